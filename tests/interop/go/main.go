// Command interop drives the real Asynq against a Redis on a unix socket, for the tests beside it.
//
//	interop <enqueue|serve|inspect|record> <socket> [flags]
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
		fail(fmt.Errorf("usage: interop <enqueue|serve|inspect|record> <socket> [flags]"))
	}
	connection := asynq.RedisClientOpt{Network: "unix", Addr: os.Args[2]}
	commands := map[string]func(asynq.RedisClientOpt, []string) error{
		"enqueue": enqueue,
		"serve":   serve,
		"inspect": inspect,
		"record":  record,
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
