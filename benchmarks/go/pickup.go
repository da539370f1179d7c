package main

import (
	"context"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// pickup serves with a handler that reports when it was started, on a connection of its own.
func pickup(connection asynq.RedisClientOpt, concurrency int) error {
	client := redis.NewClient(&redis.Options{Addr: connection.Addr})
	defer client.Close()
	return serve(connection, concurrency, func(ctx context.Context, _ *asynq.Task) error {
		return client.LPush(ctx, pickedKey, time.Now().UnixNano()).Err()
	})
}
