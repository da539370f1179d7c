package main

import (
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// recordScheduler shows one entry for each set of options, so that every kind of option occurs.
func recordScheduler(connection asynq.RedisClientOpt, raw *redis.Client) (recordedStep, error) {
	empty(raw)
	scheduler := newScheduler(connection)
	task := asynq.NewTask("golden:cron", []byte("{}"))
	for _, options := range [][]asynq.Option{
		{asynq.Queue("golden"), asynq.MaxRetry(3), asynq.Timeout(90 * time.Second), asynq.Unique(time.Hour),
			asynq.Retention(2 * time.Hour)},
		{asynq.Queue("golden"), asynq.Deadline(time.Unix(farFuture, 0)), asynq.Group("a \"b\""),
			asynq.ProcessIn(5 * time.Minute)},
		{asynq.Queue("卡\n"), asynq.ProcessAt(time.Unix(farFuture, 0)), asynq.Timeout(1500 * time.Millisecond)},
	} {
		if _, err := scheduler.Register("0 0 1 1 *", task, options...); err != nil {
			return recordedStep{}, err
		}
	}
	return whileScheduling(scheduler, raw, "scheduler", 500*time.Millisecond)
}

// recordHistory lets an entry fire once.
func recordHistory(connection asynq.RedisClientOpt, raw *redis.Client) (recordedStep, error) {
	empty(raw)
	scheduler := newScheduler(connection)
	_, err := scheduler.Register("@every 1s", asynq.NewTask("golden:cron", []byte("{}")),
		asynq.Queue("golden"), asynq.TaskID("id"))
	if err != nil {
		return recordedStep{}, err
	}
	return whileScheduling(scheduler, raw, "history", 1800*time.Millisecond)
}

func newScheduler(connection asynq.RedisClientOpt) *asynq.Scheduler {
	return asynq.NewScheduler(connection, &asynq.SchedulerOpts{
		HeartbeatInterval: 200 * time.Millisecond, LogLevel: asynq.FatalLevel,
	})
}

func whileScheduling(
	scheduler *asynq.Scheduler, raw *redis.Client, name string, after time.Duration,
) (recordedStep, error) {
	if err := scheduler.Start(); err != nil {
		return recordedStep{}, err
	}
	time.Sleep(after)
	step := recordedStep{name, time.Now().Unix(), nil, dump(raw)}
	scheduler.Shutdown()
	return step, nil
}
