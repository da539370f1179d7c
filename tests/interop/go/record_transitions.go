package main

import (
	"context"
	"errors"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

const (
	settle    = 700 * time.Millisecond // several turns of every loop of these servers
	recovered = 1500 * time.Millisecond
)

func empty(raw *redis.Client) { raw.FlushAll(context.Background()) }

func uniqueCase(name string) enqueueCase {
	return enqueueCase{
		Name: name, Type: "golden:" + name, Payload: []byte(name), Queue: "golden", TaskID: "id", Unique: 3600,
	}
}

func put(connection asynq.RedisClientOpt, one enqueueCase, more ...asynq.Option) error {
	client := asynq.NewClient(connection)
	defer client.Close()
	_, err := client.Enqueue(one.task(), append(one.options(), more...)...)
	return err
}

func pauseGolden(connection asynq.RedisClientOpt) error {
	inspector := asynq.NewInspector(connection)
	defer inspector.Close()
	return inspector.PauseQueue("golden")
}

func taken(one enqueueCase, raw *redis.Client, at int64) recordedStep {
	return recordedStep{one.Name, at, &one, dump(raw)}
}

// hanging returns a handler that tells when it began and then waits for its context to end.
func hanging() (asynq.Handler, chan int64) {
	began := make(chan int64, 1)
	return asynq.HandlerFunc(func(ctx context.Context, _ *asynq.Task) error {
		began <- time.Now().Unix()
		<-ctx.Done()
		return ctx.Err()
	}), began
}

// idle is a server that runs only its background loops: its queue is paused.
func idle(connection asynq.RedisClientOpt, raw *redis.Client, adjust func(*asynq.Config), wait time.Duration) error {
	if err := pauseGolden(connection); err != nil {
		return err
	}
	nothing := asynq.HandlerFunc(func(context.Context, *asynq.Task) error { return nil })
	server := startServerWith(connection, "golden", nothing, adjust)
	time.Sleep(wait)
	server.Shutdown()
	return raw.Del(context.Background(), "asynq:{golden}:paused").Err()
}

func asIs(*asynq.Config) {}

// recordActive dumps while a server works on a task: its lease, and what the server shows of itself.
func recordActive(connection asynq.RedisClientOpt, raw *redis.Client) (recordedStep, error) {
	empty(raw)
	one := uniqueCase("active")
	one.Timeout = 90
	if err := put(connection, one); err != nil {
		return recordedStep{}, err
	}
	handler, began := hanging()
	server := startServerWith(connection, "golden", handler, func(config *asynq.Config) {
		config.ShutdownTimeout = time.Millisecond
	})
	at := <-began
	time.Sleep(5500 * time.Millisecond) // until the next heartbeat, which writes the worker
	step := taken(one, raw, at)
	server.Shutdown()
	return step, nil
}

// recordRequeue shuts a server down under a task.
func recordRequeue(connection asynq.RedisClientOpt, raw *redis.Client) (recordedStep, error) {
	empty(raw)
	one := uniqueCase("requeue")
	if err := put(connection, one); err != nil {
		return recordedStep{}, err
	}
	handler, began := hanging()
	server := startServerWith(connection, "golden", handler, func(config *asynq.Config) {
		config.ShutdownTimeout = time.Millisecond
	})
	at := <-began
	server.Shutdown()
	return taken(one, raw, at), nil
}

// recordNoFailure has a task fail with an error that does not count.
func recordNoFailure(connection asynq.RedisClientOpt, raw *redis.Client) (recordedStep, error) {
	empty(raw)
	one := uniqueCase("no failure")
	if err := put(connection, one); err != nil {
		return recordedStep{}, err
	}
	failing := asynq.HandlerFunc(func(context.Context, *asynq.Task) error { return errors.New("as ordered") })
	server := startServerWith(connection, "golden", failing, func(config *asynq.Config) {
		config.IsFailure = func(error) bool { return false }
	})
	time.Sleep(settle)
	at := time.Now().Unix()
	server.Shutdown()
	return taken(one, raw, at), nil
}

func recordPause(connection asynq.RedisClientOpt, raw *redis.Client) (recordedStep, error) {
	empty(raw)
	one := uniqueCase("pause")
	if err := put(connection, one); err != nil {
		return recordedStep{}, err
	}
	at := time.Now().Unix()
	err := pauseGolden(connection)
	return taken(one, raw, at), err
}

// recordForwardScheduled lets a scheduled task become due.
func recordForwardScheduled(connection asynq.RedisClientOpt, raw *redis.Client) (recordedStep, error) {
	empty(raw)
	one := uniqueCase("forward scheduled")
	if err := put(connection, one, asynq.ProcessIn(time.Second)); err != nil {
		return recordedStep{}, err
	}
	if err := idle(connection, raw, asIs, 2*time.Second); err != nil {
		return recordedStep{}, err
	}
	return taken(one, raw, time.Now().Unix()), nil
}

// recordForwardRetry fails a task once and lets its retry become due.
func recordForwardRetry(connection asynq.RedisClientOpt, raw *redis.Client) (recordedStep, error) {
	empty(raw)
	one := uniqueCase("forward retry")
	if err := put(connection, one); err != nil {
		return recordedStep{}, err
	}
	failing := asynq.HandlerFunc(func(context.Context, *asynq.Task) error { return errors.New("as ordered") })
	server := startServerWith(connection, "golden", failing, func(config *asynq.Config) {
		config.DelayedTaskCheckInterval = time.Hour
		config.RetryDelayFunc = func(int, error, *asynq.Task) time.Duration { return time.Second }
	})
	time.Sleep(settle)
	at := time.Now().Unix()
	server.Shutdown()
	if err := idle(connection, raw, asIs, 2*time.Second); err != nil {
		return recordedStep{}, err
	}
	return taken(one, raw, at), nil
}

// recordLeaseExpired leaves a task as a killed worker does, long ago, for a recoverer to find.
func recordLeaseExpired(connection asynq.RedisClientOpt, raw *redis.Client) (recordedStep, error) {
	empty(raw)
	one := uniqueCase("lease expired")
	if err := put(connection, one); err != nil {
		return recordedStep{}, err
	}
	ctx := context.Background()
	raw.RPopLPush(ctx, "asynq:{golden}:pending", "asynq:{golden}:active")
	raw.HSet(ctx, "asynq:{golden}:t:id", "state", "active")
	raw.HDel(ctx, "asynq:{golden}:t:id", "pending_since")
	raw.ZAdd(ctx, "asynq:{golden}:lease", redis.Z{Score: float64(time.Now().Unix() - 100), Member: "id"})
	at := time.Now().Unix()
	if err := idle(connection, raw, asIs, recovered); err != nil {
		return recordedStep{}, err
	}
	return taken(one, raw, at), nil
}

// recordRetentionOver has the janitor take away a completed task.
func recordRetentionOver(connection asynq.RedisClientOpt, raw *redis.Client) (recordedStep, error) {
	empty(raw)
	one := uniqueCase("retention over")
	one.Retention = 1
	if err := put(connection, one); err != nil {
		return recordedStep{}, err
	}
	server := startServer(connection, "golden", asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
		return nil
	}))
	at := time.Now().Unix()
	time.Sleep(10 * time.Second) // the janitor's interval cannot be set
	server.Shutdown()
	return taken(one, raw, at), nil
}
