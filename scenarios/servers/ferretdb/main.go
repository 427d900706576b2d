// FerretDB 1.x with its SQLite backend: MongoDB's protocol, without telemetry and without a state file.
// usage: ferretdb-server ADDRESS DIRECTORY
// Once it listens, its URI is the only line on the standard output; SIGTERM and SIGINT end it.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/FerretDB/FerretDB/ferretdb"
)

func main() {
	if len(os.Args) != 3 {
		fail(fmt.Errorf("usage: ferretdb-server ADDRESS DIRECTORY"))
	}
	server, err := ferretdb.New(&ferretdb.Config{
		Listener:  ferretdb.ListenerConfig{TCP: os.Args[1]},
		Logger:    slog.New(slog.NewTextHandler(io.Discard, nil)),
		Handler:   "sqlite",
		SQLiteURL: "file:" + os.Args[2] + "/",
	})
	if err != nil {
		fail(err)
	}
	running, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- server.Run(running) }()
	fmt.Println(server.MongoDBURI())
	if err := <-ended; err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
