package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/hibiken/asynq"
)

type handledTask struct {
	ID       string            `json:"id"`
	Type     string            `json:"type"`
	Payload  []byte            `json:"payload"`
	Headers  map[string]string `json:"headers"`
	Retried  int               `json:"retried"`
	MaxRetry int               `json:"max_retry"`
	Left     float64           `json:"left_s"`
}

// serve runs a server on one queue until it has handled <count> tasks, then prints them.
// Payloads are orders: "fail" an error, "skip" SkipRetry, "result" writes a result; all else succeeds.
func serve(connection asynq.RedisClientOpt, arguments []string) error {
	if len(arguments) != 2 {
		return fmt.Errorf("usage: interop serve <socket> <queue> <count>")
	}
	count, err := strconv.Atoi(arguments[1])
	if err != nil {
		return err
	}
	var mutex sync.Mutex
	var handled []handledTask
	enough := make(chan struct{})
	handler := asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
		id, _ := asynq.GetTaskID(ctx)
		retried, _ := asynq.GetRetryCount(ctx)
		maxRetry, _ := asynq.GetMaxRetry(ctx)
		deadline, _ := ctx.Deadline()
		left := time.Until(deadline).Seconds()
		mutex.Lock()
		defer mutex.Unlock()
		handled = append(handled, handledTask{id, task.Type(), task.Payload(), task.Headers(), retried, maxRetry, left})
		if len(handled) == count {
			close(enough)
		}
		return obey(task)
	})
	server := startServer(connection, arguments[0], handler)
	select {
	case <-enough:
	case <-time.After(20 * time.Second):
		err = fmt.Errorf("handled %d of %d tasks in time", len(handled), count)
	}
	server.Shutdown()
	if err != nil {
		return err
	}
	return printJSON(handled)
}

func startServer(connection asynq.RedisClientOpt, queue string, handler asynq.Handler) *asynq.Server {
	return startServerWith(connection, queue, handler, func(*asynq.Config) {})
}

func startServerWith(
	connection asynq.RedisClientOpt, queue string, handler asynq.Handler, adjust func(*asynq.Config),
) *asynq.Server {
	config := asynq.Config{
		Concurrency:              4,
		Queues:                   map[string]int{queue: 1},
		TaskCheckInterval:        200 * time.Millisecond,
		DelayedTaskCheckInterval: 200 * time.Millisecond,
		LogLevel:                 asynq.FatalLevel,
		RetryDelayFunc:           func(int, error, *asynq.Task) time.Duration { return time.Hour },
	}
	adjust(&config)
	server := asynq.NewServer(connection, config)
	if err := server.Start(handler); err != nil {
		fail(err)
	}
	return server
}

func obey(task *asynq.Task) error {
	switch string(task.Payload()) {
	case "fail":
		return errors.New("as ordered")
	case "skip":
		return fmt.Errorf("as ordered: %w", asynq.SkipRetry)
	case "result":
		_, err := task.ResultWriter().Write([]byte("42"))
		return err
	}
	return nil
}
