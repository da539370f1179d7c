package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// Where workers of both languages count what they ran, so that tests can add it up.
const (
	executionsKey = "interop:executions"
	workersKey    = "interop:workers"
)

// work serves one queue until it is told to stop, and counts in Redis how often it ran each task.
// With -hang no task ends by itself: the worker is there to be killed, or its tasks to be cancelled.
func work(connection asynq.RedisClientOpt, arguments []string) error {
	flags := flag.NewFlagSet("work", flag.ContinueOnError)
	queue := flags.String("queue", "golden", "queue to serve")
	name := flags.String("name", "go", "field under which the runs are counted")
	concurrency := flags.Int("concurrency", 10, "handlers at once")
	hang := flags.Bool("hang", false, "run every task until its context ends")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	raw := redis.NewClient(&redis.Options{Network: "unix", Addr: connection.Addr})
	defer raw.Close()
	server := asynq.NewServer(connection, asynq.Config{
		Concurrency:              *concurrency,
		Queues:                   map[string]int{*queue: 1},
		TaskCheckInterval:        200 * time.Millisecond,
		DelayedTaskCheckInterval: 200 * time.Millisecond,
		LogLevel:                 asynq.FatalLevel,
		RetryDelayFunc:           func(int, error, *asynq.Task) time.Duration { return time.Second },
	})
	handler := asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
		id, _ := asynq.GetTaskID(ctx)
		pipe := raw.Pipeline()
		pipe.HIncrBy(context.Background(), executionsKey, id, 1)
		pipe.HIncrBy(context.Background(), workersKey, *name, 1)
		if _, err := pipe.Exec(context.Background()); err != nil {
			return err
		}
		if *hang {
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	})
	if err := server.Start(handler); err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	<-stop
	server.Shutdown()
	return nil
}

// bulk enqueues <count> plain tasks named <prefix>-<number>, as several producers at once would.
func bulk(connection asynq.RedisClientOpt, arguments []string) error {
	flags := flag.NewFlagSet("bulk", flag.ContinueOnError)
	queue := flags.String("queue", "golden", "queue to fill")
	prefix := flags.String("prefix", "go", "what every task id starts with")
	count := flags.Int("count", 1, "how many tasks")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	client := asynq.NewClient(connection)
	defer client.Close()
	const producers = 8
	failures := make(chan error, producers)
	for producer := 0; producer < producers; producer++ {
		go func() {
			for number := producer; number < *count; number += producers {
				id := asynq.TaskID(fmt.Sprintf("%s-%d", *prefix, number))
				if _, err := client.Enqueue(asynq.NewTask("interop:count", nil), asynq.Queue(*queue), id); err != nil {
					failures <- err
					return
				}
			}
			failures <- nil
		}()
	}
	for producer := 0; producer < producers; producer++ {
		if err := <-failures; err != nil {
			return err
		}
	}
	return printJSON(*count)
}

// schedule fires one entry each second until it is told to stop.
func schedule(connection asynq.RedisClientOpt, arguments []string) error {
	scheduler := asynq.NewScheduler(connection, &asynq.SchedulerOpts{
		HeartbeatInterval: 200 * time.Millisecond, LogLevel: asynq.FatalLevel,
	})
	id, err := scheduler.Register("@every 1s", asynq.NewTask("interop:cron", []byte("{}")),
		asynq.Queue("golden"), asynq.MaxRetry(3), asynq.Retention(time.Hour))
	if err != nil {
		return err
	}
	if err := scheduler.Start(); err != nil {
		return err
	}
	if err := printJSON(id); err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	<-stop
	scheduler.Shutdown()
	return nil
}
