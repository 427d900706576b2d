// FerretDB 1.x with its SQLite backend: MongoDB's protocol, without telemetry and without a state file.
// usage: ferretdb-server ADDRESS DIRECTORY [PARAMETERS]
// PARAMETERS go to SQLite: "_pragma=busy_timeout(60000)" waits a minute for other writers, not ten seconds.
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
	if len(os.Args) != 3 && len(os.Args) != 4 {
		fail(fmt.Errorf("usage: ferretdb-server ADDRESS DIRECTORY [PARAMETERS]"))
	}
	url := "file:" + os.Args[2] + "/"
	if len(os.Args) == 4 {
		url += "?" + os.Args[3]
	}
	server, err := ferretdb.New(&ferretdb.Config{
		Listener:  ferretdb.ListenerConfig{TCP: os.Args[1]},
		Logger:    slog.New(slog.NewTextHandler(io.Discard, nil)),
		Handler:   "sqlite",
		SQLiteURL: url,
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
