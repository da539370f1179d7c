// Command bench is Go's side of the comparison: the real Asynq doing what benchmarks/asynq_bench does in Python.
//
//	bench serve   <host:port> <concurrency>     process tasks until SIGTERM
//	bench pickup  <host:port> <concurrency>     as serve; each handler LPUSHes its start (unix ns) to bench:picked
//	bench enqueue <host:port> <count> <payload bytes>         one goroutine, one task a call; prints seconds
//	bench batch   <host:port> <calls> <size> <payload bytes>  pipelines of <size>; prints seconds
//
// "serve" and "pickup" print one line, "ready", once the server runs. Payloads are what the Python side sends.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/hibiken/asynq"
)

const pickedKey = "bench:picked"

func main() {
	if len(os.Args) < 4 {
		fail(fmt.Errorf("usage: bench <serve|pickup|enqueue|batch> <host:port> <number> ..."))
	}
	number, err := strconv.Atoi(os.Args[3])
	if err != nil {
		fail(err)
	}
	connection := asynq.RedisClientOpt{Addr: os.Args[2]}
	switch os.Args[1] {
	case "serve":
		err = serve(connection, number, func(context.Context, *asynq.Task) error { return nil })
	case "pickup":
		err = pickup(connection, number)
	case "enqueue":
		err = enqueue(connection, number, os.Args[4:])
	case "batch":
		err = batch(connection, number, os.Args[4:])
	default:
		err = fmt.Errorf("unknown subcommand %q", os.Args[1])
	}
	if err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// serve runs a server with Asynq's own settings; only its logging is turned down to errors.
func serve(connection asynq.RedisClientOpt, concurrency int, handler asynq.HandlerFunc) error {
	server := asynq.NewServer(connection, asynq.Config{Concurrency: concurrency, LogLevel: asynq.ErrorLevel})
	mux := asynq.NewServeMux()
	mux.HandleFunc("bench:", handler)
	if err := server.Start(mux); err != nil {
		return err
	}
	fmt.Println("ready")
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	<-stop
	server.Shutdown()
	return nil
}

func enqueue(connection asynq.RedisClientOpt, count int, rest []string) error {
	if len(rest) != 1 {
		return fmt.Errorf("usage: bench enqueue <host:port> <count> <payload bytes>")
	}
	size, err := strconv.Atoi(rest[0])
	if err != nil {
		return err
	}
	client := asynq.NewClient(connection)
	defer client.Close()
	payload := make([]byte, size)
	if _, err := client.Enqueue(asynq.NewTask("bench:warm", payload)); err != nil {
		return err
	}
	began := time.Now()
	for range count {
		if _, err := client.Enqueue(asynq.NewTask("bench:noop", payload)); err != nil {
			return err
		}
	}
	fmt.Printf("%.6f\n", time.Since(began).Seconds())
	return nil
}
