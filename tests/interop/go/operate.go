package main

import (
	"encoding/hex"
	"fmt"
	"time"

	"github.com/hibiken/asynq"
)

type detail struct {
	State       string            `json:"state"`
	Type        string            `json:"type"`
	Payload     string            `json:"payload"`
	Headers     map[string]string `json:"headers"`
	MaxRetry    int               `json:"max_retry"`
	Retried     int               `json:"retried"`
	LastErr     string            `json:"last_error"`
	LastFailed  int64             `json:"last_failed_at"`
	Timeout     int64             `json:"timeout"`
	Deadline    int64             `json:"deadline"`
	Group       string            `json:"group"`
	Retention   int64             `json:"retention"`
	CompletedAt int64             `json:"completed_at"`
	Next        int64             `json:"next_process_at"`
	Result      string            `json:"result"`
	Orphaned    bool              `json:"orphaned"`
}

// details prints all that Asynq's Inspector knows of one queue: figures, groups, history, every listed task
// in the order of its list, and the same task asked for by its id.
func details(connection asynq.RedisClientOpt, arguments []string) error {
	if len(arguments) != 1 {
		return fmt.Errorf("usage: interop details <socket> <queue>")
	}
	inspector := asynq.NewInspector(connection)
	defer inspector.Close()
	queue := arguments[0]
	info, err := inspector.GetQueueInfo(queue)
	if err != nil {
		return err
	}
	groups, err := inspector.Groups(queue)
	if err != nil {
		return err
	}
	days, err := inspector.History(queue, 3)
	if err != nil {
		return err
	}
	seen := map[string]any{
		"queue": map[string]any{
			"pending": info.Pending, "active": info.Active, "scheduled": info.Scheduled, "retry": info.Retry,
			"archived": info.Archived, "completed": info.Completed, "aggregating": info.Aggregating,
			"groups": info.Groups, "size": info.Size, "paused": info.Paused,
			"processed_today": info.Processed, "failed_today": info.Failed,
			"processed_total": info.ProcessedTotal, "failed_total": info.FailedTotal,
		},
	}
	sizes := map[string]int{}
	for _, group := range groups {
		sizes[group.Group] = group.Size
	}
	seen["groups"] = sizes
	history := [][]any{}
	for _, day := range days {
		history = append(history, []any{day.Date.Format(time.DateOnly), day.Processed, day.Failed})
	}
	seen["history"] = history
	if seen["lists"], seen["tasks"], err = detailedTasks(inspector, queue, groups); err != nil {
		return err
	}
	return printJSON(seen)
}

func detailedTasks(
	inspector *asynq.Inspector, queue string, groups []*asynq.GroupInfo,
) (map[string][]string, map[string]detail, error) {
	lists := map[string]func() ([]*asynq.TaskInfo, error){
		"pending":   func() ([]*asynq.TaskInfo, error) { return inspector.ListPendingTasks(queue) },
		"active":    func() ([]*asynq.TaskInfo, error) { return inspector.ListActiveTasks(queue) },
		"scheduled": func() ([]*asynq.TaskInfo, error) { return inspector.ListScheduledTasks(queue) },
		"retry":     func() ([]*asynq.TaskInfo, error) { return inspector.ListRetryTasks(queue) },
		"archived":  func() ([]*asynq.TaskInfo, error) { return inspector.ListArchivedTasks(queue) },
		"completed": func() ([]*asynq.TaskInfo, error) { return inspector.ListCompletedTasks(queue) },
	}
	for _, group := range groups {
		name := group.Group
		lists["aggregating:"+name] = func() ([]*asynq.TaskInfo, error) {
			return inspector.ListAggregatingTasks(queue, name)
		}
	}
	ids, tasks := map[string][]string{}, map[string]detail{}
	for name, list := range lists {
		listed, err := list()
		if err != nil {
			return nil, nil, err
		}
		ids[name] = []string{}
		for _, task := range listed {
			ids[name] = append(ids[name], task.ID)
			one, err := inspector.GetTaskInfo(queue, task.ID)
			if err != nil {
				return nil, nil, err
			}
			// Only a list tells an orphan: GetTaskInfo leaves that out.
			tasks[task.ID] = detailOf(one, task.IsOrphaned)
		}
	}
	return ids, tasks, nil
}

func detailOf(task *asynq.TaskInfo, orphaned bool) detail {
	return detail{
		State: task.State.String(), Type: task.Type, Payload: hex.EncodeToString(task.Payload), Headers: task.Headers,
		MaxRetry: task.MaxRetry, Retried: task.Retried, LastErr: task.LastErr,
		LastFailed: unixOrZero(task.LastFailedAt), Timeout: int64(task.Timeout.Seconds()),
		Deadline: unixOrZero(task.Deadline), Group: task.Group, Retention: int64(task.Retention.Seconds()),
		CompletedAt: unixOrZero(task.CompletedAt), Next: unixOrZero(task.NextProcessAt),
		Result: string(task.Result), Orphaned: orphaned,
	}
}

func unixOrZero(instant time.Time) int64 {
	if instant.IsZero() {
		return 0
	}
	return instant.Unix()
}

// operate does one thing with Asynq's Inspector and prints how many tasks it touched, or why it was refused.
func operate(connection asynq.RedisClientOpt, arguments []string) error {
	if len(arguments) < 2 {
		return fmt.Errorf("usage: interop operate <socket> <operation> <queue> [id|state|payload…]")
	}
	inspector := asynq.NewInspector(connection)
	defer inspector.Close()
	operation, queue, rest := arguments[0], arguments[1], append(arguments[2:], "", "")
	one := map[string]func() error{
		"pause":        func() error { return inspector.PauseQueue(queue) },
		"unpause":      func() error { return inspector.UnpauseQueue(queue) },
		"delete_queue": func() error { return inspector.DeleteQueue(queue, rest[0] == "force") },
		"run":          func() error { return inspector.RunTask(queue, rest[0]) },
		"archive":      func() error { return inspector.ArchiveTask(queue, rest[0]) },
		"delete":       func() error { return inspector.DeleteTask(queue, rest[0]) },
		"update":       func() error { return inspector.UpdateTaskPayload(queue, rest[0], []byte(rest[1])) },
	}
	group := rest[1]
	all := map[string]func(string) (int, error){
		"run_all scheduled":       inspector.RunAllScheduledTasks,
		"run_all retry":           inspector.RunAllRetryTasks,
		"run_all archived":        inspector.RunAllArchivedTasks,
		"run_all aggregating":     func(q string) (int, error) { return inspector.RunAllAggregatingTasks(q, group) },
		"archive_all pending":     inspector.ArchiveAllPendingTasks,
		"archive_all scheduled":   inspector.ArchiveAllScheduledTasks,
		"archive_all retry":       inspector.ArchiveAllRetryTasks,
		"archive_all aggregating": func(q string) (int, error) { return inspector.ArchiveAllAggregatingTasks(q, group) },
		"delete_all pending":      inspector.DeleteAllPendingTasks,
		"delete_all scheduled":    inspector.DeleteAllScheduledTasks,
		"delete_all retry":        inspector.DeleteAllRetryTasks,
		"delete_all archived":     inspector.DeleteAllArchivedTasks,
		"delete_all completed":    inspector.DeleteAllCompletedTasks,
		"delete_all aggregating":  func(q string) (int, error) { return inspector.DeleteAllAggregatingTasks(q, group) },
	}
	answer := map[string]any{"count": 0, "error": ""}
	var err error
	if do, known := one[operation]; known {
		err = do()
	} else if do, known := all[operation+" "+rest[0]]; known {
		answer["count"], err = do(queue)
	} else {
		return fmt.Errorf("unknown operation %q", operation)
	}
	if err != nil {
		answer["error"] = err.Error()
	}
	return printJSON(answer)
}
