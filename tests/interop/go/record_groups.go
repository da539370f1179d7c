package main

import (
	"context"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

func groupCase(name string) enqueueCase {
	return enqueueCase{
		Name: name, Type: "golden:group", Payload: []byte(name), Queue: "golden", TaskID: "id", Group: "cards",
	}
}

func joining(aggregator asynq.GroupAggregator) func(*asynq.Config) {
	return func(config *asynq.Config) {
		config.GroupAggregator = aggregator
		config.GroupGracePeriod = time.Second
	}
}

// recordAggregationSet dumps while an aggregator has a set of tasks in its hands.
func recordAggregationSet(connection asynq.RedisClientOpt, raw *redis.Client) (recordedStep, error) {
	empty(raw)
	one := groupCase("aggregation set")
	if err := put(connection, one); err != nil {
		return recordedStep{}, err
	}
	if err := pauseGolden(connection); err != nil {
		return recordedStep{}, err
	}
	entered, leave := make(chan int64, 1), make(chan struct{})
	holding := asynq.GroupAggregatorFunc(func(group string, tasks []*asynq.Task) *asynq.Task {
		entered <- time.Now().Unix()
		<-leave
		return joinTasks(group, tasks)
	})
	nothing := asynq.HandlerFunc(func(context.Context, *asynq.Task) error { return nil })
	server := startServerWith(connection, "golden", nothing, joining(holding))
	at := <-entered
	step := taken(one, raw, at)
	close(leave)
	server.Shutdown()
	return step, nil
}

// recordAggregated lets a group become one task.
func recordAggregated(connection asynq.RedisClientOpt, raw *redis.Client) (recordedStep, error) {
	empty(raw)
	one := groupCase("aggregated")
	if err := put(connection, one); err != nil {
		return recordedStep{}, err
	}
	if err := idle(connection, raw, joining(asynq.GroupAggregatorFunc(joinTasks)), 4*time.Second); err != nil {
		return recordedStep{}, err
	}
	return taken(one, raw, time.Now().Unix()), nil
}

// recordReclaimedSet leaves a set as an aggregator that was killed does, for a recoverer to find.
func recordReclaimedSet(connection asynq.RedisClientOpt, raw *redis.Client) (recordedStep, error) {
	empty(raw)
	one := groupCase("reclaimed set")
	if err := put(connection, one); err != nil {
		return recordedStep{}, err
	}
	ctx, set := context.Background(), "asynq:{golden}:g:cards:2c9b0d9e-7d4c-4f0e-9a57-0d8d6b1a3c11"
	raw.Rename(ctx, "asynq:{golden}:g:cards", set)
	raw.SRem(ctx, "asynq:{golden}:groups", "cards")
	raw.ZAdd(ctx, "asynq:{golden}:aggregation_sets", redis.Z{Score: float64(time.Now().Unix() - 1), Member: set})
	at := time.Now().Unix()
	if err := idle(connection, raw, asIs, recovered); err != nil {
		return recordedStep{}, err
	}
	return taken(one, raw, at), nil
}
