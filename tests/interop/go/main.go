// Command interop drives the real Asynq against a Redis on a unix socket, for the tests beside it.
//
//	interop <aggregate|bulk|details|enqueue|inspect|operate|record|schedule|serve|work> <socket> [flags]
//
// Every subcommand prints JSON to standard output.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/hibiken/asynq"
)

func main() {
	if len(os.Args) < 3 {
		fail(fmt.Errorf("usage: interop <aggregate|bulk|details|enqueue|inspect|operate|record|schedule|serve|work> <socket> [flags]"))
	}
	connection := asynq.RedisClientOpt{Network: "unix", Addr: os.Args[2]}
	commands := map[string]func(asynq.RedisClientOpt, []string) error{
		"aggregate": aggregate,
		"bulk":      bulk,
		"details":   details,
		"enqueue":   enqueue,
		"inspect":   inspect,
		"operate":   operate,
		"record":    record,
		"schedule":  schedule,
		"serve":     serve,
		"work":      work,
	}
	command, known := commands[os.Args[1]]
	if !known {
		fail(fmt.Errorf("unknown subcommand %q", os.Args[1]))
	}
	if err := command(connection, os.Args[3:]); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func printJSON(value any) error {
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", " ")
	return encoder.Encode(value)
}
