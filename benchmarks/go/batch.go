package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"google.golang.org/protobuf/encoding/protowire"
)

// Asynq v0.26.0 has no batch enqueue; its development branch pipelines the plain enqueue script. This does the
// same with our own words: what a batch of Asynq's would reach at best, without its checks and results.
var enqueueScript = redis.NewScript(`
if redis.call("EXISTS", KEYS[1]) == 1 then
  return 0
end
redis.call("HSET", KEYS[1], "msg", ARGV[1], "state", "pending", "pending_since", ARGV[3])
redis.call("LPUSH", KEYS[2], ARGV[2])
return 1
`)

const (
	prefix   = "asynq:{default}:"
	maxRetry = 25
	timeoutS = 1800
)

func batch(connection asynq.RedisClientOpt, calls int, rest []string) error {
	if len(rest) != 2 {
		return fmt.Errorf("usage: bench batch <host:port> <calls> <size> <payload bytes>")
	}
	size, err := strconv.Atoi(rest[0])
	if err != nil {
		return err
	}
	payloadBytes, err := strconv.Atoi(rest[1])
	if err != nil {
		return err
	}
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: connection.Addr})
	defer client.Close()
	if err := enqueueScript.Load(ctx, client).Err(); err != nil {
		return err
	}
	payload := make([]byte, payloadBytes)
	began := time.Now()
	for range calls {
		pipe := client.Pipeline()
		for range size {
			id := uuid.NewString()
			keys := []string{prefix + "t:" + id, prefix + "pending"}
			enqueueScript.EvalSha(ctx, pipe, keys, message(id, payload), id, time.Now().UnixNano())
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return err
		}
	}
	fmt.Printf("%.6f\n", time.Since(began).Seconds())
	return nil
}

// message encodes a TaskMessage: type, payload, id, queue, retry, timeout.
func message(id string, payload []byte) []byte {
	var raw []byte
	for number, value := range [][]byte{[]byte("bench:noop"), payload, []byte(id), []byte("default")} {
		raw = protowire.AppendTag(raw, protowire.Number(number+1), protowire.BytesType)
		raw = protowire.AppendBytes(raw, value)
	}
	raw = protowire.AppendTag(raw, 5, protowire.VarintType)
	raw = protowire.AppendVarint(raw, maxRetry)
	raw = protowire.AppendTag(raw, 8, protowire.VarintType)
	return protowire.AppendVarint(raw, timeoutS)
}
