package main

import (
	"time"

	"github.com/hibiken/asynq"
)

// enqueueCase is one task and the options it is enqueued with; durations are seconds, instants unix seconds.
// The Python side builds the same task from the same figures.
type enqueueCase struct {
	Name      string            `json:"name"`
	Type      string            `json:"type"`
	Payload   []byte            `json:"payload"`
	Headers   map[string]string `json:"headers,omitempty"`
	Queue     string            `json:"queue"`
	TaskID    string            `json:"task_id"`
	MaxRetry  *int              `json:"max_retry,omitempty"`
	Timeout   int64             `json:"timeout,omitempty"`
	Deadline  int64             `json:"deadline,omitempty"`
	Unique    int64             `json:"unique_for,omitempty"`
	Retention int64             `json:"retention,omitempty"`
	ProcessAt int64             `json:"process_at,omitempty"`
	Group     string            `json:"group,omitempty"`
}

func (c enqueueCase) task() *asynq.Task {
	return asynq.NewTaskWithHeaders(c.Type, c.Payload, c.Headers)
}

func (c enqueueCase) options() []asynq.Option {
	options := []asynq.Option{asynq.Queue(c.Queue), asynq.TaskID(c.TaskID)}
	if c.MaxRetry != nil {
		options = append(options, asynq.MaxRetry(*c.MaxRetry))
	}
	if c.Timeout != 0 {
		options = append(options, asynq.Timeout(time.Duration(c.Timeout)*time.Second))
	}
	if c.Deadline != 0 {
		options = append(options, asynq.Deadline(time.Unix(c.Deadline, 0)))
	}
	if c.Unique != 0 {
		options = append(options, asynq.Unique(time.Duration(c.Unique)*time.Second))
	}
	if c.Retention != 0 {
		options = append(options, asynq.Retention(time.Duration(c.Retention)*time.Second))
	}
	if c.ProcessAt != 0 {
		options = append(options, asynq.ProcessAt(time.Unix(c.ProcessAt, 0)))
	}
	if c.Group != "" {
		options = append(options, asynq.Group(c.Group))
	}
	return options
}

const farFuture = 4102444800 // 2100-01-01

func enqueueCases() []enqueueCase {
	none, many := 0, 100
	payload := []byte(`{"v":1,"card_id":42}`)
	cases := []enqueueCase{
		{Name: "plain", Payload: payload},
		{Name: "no payload"},
		{Name: "binary payload", Payload: []byte{0, 255, 128, 10}},
		{Name: "headers", Payload: payload, Headers: map[string]string{"traceparent": "00-1-2-01"}},
		{Name: "no retries", Payload: payload, MaxRetry: &none},
		{Name: "many retries", Payload: payload, MaxRetry: &many},
		{Name: "timeout", Payload: payload, Timeout: 90},
		{Name: "deadline", Payload: payload, Deadline: farFuture},
		{Name: "timeout and deadline", Payload: payload, Timeout: 90, Deadline: farFuture},
		{Name: "unique", Payload: payload, Unique: 3600},
		{Name: "unique without payload", Unique: 3600},
		{Name: "retention", Payload: payload, Retention: 7200},
		{Name: "scheduled", Payload: payload, ProcessAt: farFuture},
		{Name: "scheduled unique", Payload: payload, ProcessAt: farFuture, Unique: 3600},
		{Name: "group", Payload: payload, Group: "cards"},
		{Name: "group unique", Payload: payload, Group: "cards", Unique: 3600},
		{Name: "chinese", Payload: []byte(`"卡"`), Headers: map[string]string{"运营商": "移动"}},
	}
	for number := range cases {
		cases[number].Type = "golden:" + string(rune('a'+number))
		cases[number].TaskID = "id-" + string(rune('a'+number))
		cases[number].Queue = "golden"
	}
	return cases
}
