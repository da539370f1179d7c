package main

import (
	"errors"

	"github.com/hibiken/asynq"
)

type enqueueOutcome struct {
	enqueueCase
	Outcome string `json:"outcome"`
	State   string `json:"state"`
}

// enqueue puts every case into Redis and prints what became of each; run twice, each is refused.
func enqueue(connection asynq.RedisClientOpt, _ []string) error {
	client := asynq.NewClient(connection)
	defer client.Close()
	var outcomes []enqueueOutcome
	for _, one := range enqueueCases() {
		info, err := client.Enqueue(one.task(), one.options()...)
		switch {
		case errors.Is(err, asynq.ErrTaskIDConflict):
			outcomes = append(outcomes, enqueueOutcome{one, "id_conflict", ""})
		case errors.Is(err, asynq.ErrDuplicateTask):
			outcomes = append(outcomes, enqueueOutcome{one, "duplicate", ""})
		case err != nil:
			return err
		default:
			outcomes = append(outcomes, enqueueOutcome{one, "enqueued", info.State.String()})
		}
	}
	return printJSON(outcomes)
}
