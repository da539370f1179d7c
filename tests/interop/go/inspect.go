package main

import (
	"fmt"

	"github.com/hibiken/asynq"
)

type inspection struct {
	Queue     map[string]any            `json:"queue"`
	Days      []map[string]any          `json:"days"`
	Tasks     map[string]map[string]any `json:"tasks"`
	Servers   []map[string]any          `json:"servers"`
	Scheduler []map[string]any          `json:"scheduler"`
	Events    []map[string]any          `json:"events"`
}

// inspect prints what Asynq's Inspector, and so its command line and web UI, see of one queue.
func inspect(connection asynq.RedisClientOpt, arguments []string) error {
	if len(arguments) != 1 {
		return fmt.Errorf("usage: interop inspect <socket> <queue>")
	}
	inspector := asynq.NewInspector(connection)
	defer inspector.Close()
	queue := arguments[0]
	info, err := inspector.GetQueueInfo(queue)
	if err != nil {
		return err
	}
	seen := inspection{
		Queue: map[string]any{
			"pending": info.Pending, "active": info.Active, "scheduled": info.Scheduled, "retry": info.Retry,
			"archived": info.Archived, "completed": info.Completed, "aggregating": info.Aggregating,
			"processed": info.Processed, "failed": info.Failed, "processed_total": info.ProcessedTotal,
			"failed_total": info.FailedTotal, "paused": info.Paused, "latency_ms": info.Latency.Milliseconds(),
		},
		Tasks: map[string]map[string]any{},
	}
	days, err := inspector.History(queue, 3)
	if err != nil {
		return err
	}
	for _, day := range days {
		seen.Days = append(seen.Days, map[string]any{
			"day": day.Date.Format("2006-01-02"), "processed": day.Processed, "failed": day.Failed,
		})
	}
	if err := listTasks(inspector, queue, &seen); err != nil {
		return err
	}
	if err := listProcesses(inspector, &seen); err != nil {
		return err
	}
	return printJSON(seen)
}

func listTasks(inspector *asynq.Inspector, queue string, seen *inspection) error {
	lists := []func(string, ...asynq.ListOption) ([]*asynq.TaskInfo, error){
		inspector.ListPendingTasks, inspector.ListActiveTasks, inspector.ListScheduledTasks,
		inspector.ListRetryTasks, inspector.ListArchivedTasks, inspector.ListCompletedTasks,
	}
	for _, list := range lists {
		tasks, err := list(queue)
		if err != nil {
			return err
		}
		for _, task := range tasks {
			seen.Tasks[task.ID] = map[string]any{
				"state": task.State.String(), "type": task.Type, "payload": task.Payload,
				"retried": task.Retried, "max_retry": task.MaxRetry, "last_err": task.LastErr,
				"result": string(task.Result), "orphaned": task.IsOrphaned, "headers": task.Headers,
				"next": task.NextProcessAt.Unix(),
			}
		}
	}
	return nil
}

func listProcesses(inspector *asynq.Inspector, seen *inspection) error {
	servers, err := inspector.Servers()
	if err != nil {
		return err
	}
	for _, server := range servers {
		workers := []string{}
		for _, worker := range server.ActiveWorkers {
			workers = append(workers, worker.TaskID)
		}
		seen.Servers = append(seen.Servers, map[string]any{
			"id": server.ID, "host": server.Host, "pid": server.PID, "status": server.Status,
			"queues": server.Queues, "workers": workers,
		})
	}
	entries, err := inspector.SchedulerEntries()
	if err != nil {
		return err
	}
	for _, entry := range entries {
		options := []string{}
		for _, option := range entry.Opts {
			options = append(options, option.String())
		}
		seen.Scheduler = append(seen.Scheduler, map[string]any{
			"id": entry.ID, "spec": entry.Spec, "type": entry.Task.Type(), "payload": entry.Task.Payload(),
			"options": options, "never": entry.Prev.IsZero(), "next": entry.Next.Unix(),
		})
		events, err := inspector.ListSchedulerEnqueueEvents(entry.ID)
		if err != nil {
			return err
		}
		for _, event := range events {
			seen.Events = append(seen.Events, map[string]any{"task_id": event.TaskID, "at": event.EnqueuedAt.Unix()})
		}
	}
	return nil
}
