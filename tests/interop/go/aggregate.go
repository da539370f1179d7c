package main

import (
	"bytes"
	"context"
	"fmt"
	"sort"
	"time"

	"github.com/hibiken/asynq"
)

// joinTasks makes one task of a group: the payloads, sorted, with commas between them.
func joinTasks(group string, tasks []*asynq.Task) *asynq.Task {
	var payloads [][]byte
	for _, task := range tasks {
		payloads = append(payloads, task.Payload())
	}
	sort.Slice(payloads, func(i, j int) bool { return bytes.Compare(payloads[i], payloads[j]) < 0 })
	return asynq.NewTask("joined:"+group, bytes.Join(payloads, []byte(",")))
}

// aggregate joins the groups of one queue, handles the first task that comes of it, and prints that task.
func aggregate(connection asynq.RedisClientOpt, arguments []string) error {
	if len(arguments) != 1 {
		return fmt.Errorf("usage: interop aggregate <socket> <queue>")
	}
	joined := make(chan map[string]string, 1)
	server := asynq.NewServer(connection, asynq.Config{
		Queues:            map[string]int{arguments[0]: 1},
		TaskCheckInterval: 200 * time.Millisecond,
		LogLevel:          asynq.FatalLevel,
		GroupGracePeriod:  time.Second,
		GroupAggregator:   asynq.GroupAggregatorFunc(joinTasks),
	})
	handler := asynq.HandlerFunc(func(_ context.Context, task *asynq.Task) error {
		joined <- map[string]string{"type": task.Type(), "payload": string(task.Payload())}
		return nil
	})
	if err := server.Start(handler); err != nil {
		return err
	}
	defer server.Shutdown()
	select {
	case task := <-joined:
		return printJSON(task)
	case <-time.After(20 * time.Second):
		return fmt.Errorf("no group was joined in time")
	}
}
