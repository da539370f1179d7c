package main

import (
	"context"
	"encoding/base64"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

type recordedKey struct {
	Key    string             `json:"key"`
	Kind   string             `json:"kind"`
	Value  []byte             `json:"value,omitempty"`
	List   [][]byte           `json:"list,omitempty"`
	Scores map[string]float64 `json:"scores,omitempty"`
	Fields map[string][]byte  `json:"fields,omitempty"`
	TTL    float64            `json:"ttl_s"`
}

type recordedStep struct {
	Name string        `json:"name"`
	At   int64         `json:"at"`
	Case *enqueueCase  `json:"case,omitempty"`
	Keys []recordedKey `json:"keys"`
}

// record empties the database, takes Asynq through its transitions and prints all keys after each.
func record(connection asynq.RedisClientOpt, _ []string) error {
	raw := redis.NewClient(&redis.Options{Network: "unix", Addr: connection.Addr})
	defer raw.Close()
	steps, err := recordEnqueues(connection, raw)
	if err != nil {
		return err
	}
	for _, outcome := range []string{"done", "fail", "skip", "result"} {
		step, err := recordOutcome(connection, raw, outcome)
		if err != nil {
			return err
		}
		steps = append(steps, step)
	}
	for _, recordOne := range []func(asynq.RedisClientOpt, *redis.Client) (recordedStep, error){
		recordScheduler, recordHistory, recordActive, recordRequeue, recordNoFailure, recordPause,
		recordForwardScheduled, recordForwardRetry, recordLeaseExpired, recordRetentionOver,
		recordAggregationSet, recordAggregated, recordReclaimedSet,
	} {
		step, err := recordOne(connection, raw)
		if err != nil {
			return err
		}
		steps = append(steps, step)
	}
	return printJSON(steps)
}

func recordEnqueues(connection asynq.RedisClientOpt, raw *redis.Client) ([]recordedStep, error) {
	var steps []recordedStep
	for _, one := range enqueueCases() {
		raw.FlushAll(context.Background())
		client := asynq.NewClient(connection)
		at := time.Now().Unix()
		_, err := client.Enqueue(one.task(), one.options()...)
		client.Close()
		if err != nil {
			return nil, err
		}
		steps = append(steps, recordedStep{"enqueue", at, &one, dump(raw)})
	}
	return steps, nil
}

// recordOutcome lets a server handle one unique task, and dumps after the server has gone.
func recordOutcome(connection asynq.RedisClientOpt, raw *redis.Client, order string) (recordedStep, error) {
	raw.FlushAll(context.Background())
	one := enqueueCase{
		Name: order, Type: "golden:" + order, Payload: []byte(order), Queue: "golden", TaskID: "id", Unique: 3600,
	}
	if order == "result" {
		one.Retention = 7200
	}
	client := asynq.NewClient(connection)
	defer client.Close()
	if _, err := client.Enqueue(one.task(), one.options()...); err != nil {
		return recordedStep{}, err
	}
	handled := make(chan int64, 1)
	server := startServer(connection, one.Queue, asynq.HandlerFunc(func(_ context.Context, task *asynq.Task) error {
		defer func() { handled <- time.Now().Unix() }()
		return obey(task)
	}))
	at := <-handled
	time.Sleep(300 * time.Millisecond)
	server.Shutdown()
	return recordedStep{order, at, &one, dump(raw)}, nil
}

func dump(raw *redis.Client) []recordedKey {
	ctx := context.Background()
	var keys []recordedKey
	for _, name := range raw.Keys(ctx, "*").Val() {
		one := recordedKey{Key: withoutHost(name), Kind: raw.Type(ctx, name).Val(), TTL: raw.TTL(ctx, name).Val().Seconds()}
		switch one.Kind {
		case "string":
			one.Value, _ = raw.Get(ctx, name).Bytes()
		case "list":
			one.List = asBytes(raw.LRange(ctx, name, 0, -1).Val())
		case "set":
			one.List = asBytes(raw.SMembers(ctx, name).Val())
		case "zset":
			one.Scores = map[string]float64{}
			for _, member := range raw.ZRangeWithScores(ctx, name, 0, -1).Val() {
				one.Scores[asText(withoutHost(member.Member.(string)))] = member.Score
			}
		case "hash":
			one.Fields = map[string][]byte{}
			for field, value := range raw.HGetAll(ctx, name).Val() {
				one.Fields[field] = []byte(value)
			}
		}
		keys = append(keys, one)
	}
	return keys
}

// withoutHost hides on which machine was recorded.
func withoutHost(text string) string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		return text
	}
	return strings.ReplaceAll(text, "{"+host+":", "{host:")
}

// asText writes what is no text, such as an encoded message, in base64 and says so.
func asText(member string) string {
	if utf8.ValidString(member) && !strings.ContainsAny(member, "\x00\n") {
		return member
	}
	return "base64:" + base64.StdEncoding.EncodeToString([]byte(member))
}

func asBytes(texts []string) [][]byte {
	values := [][]byte{}
	for _, text := range texts {
		values = append(values, []byte(text))
	}
	return values
}
