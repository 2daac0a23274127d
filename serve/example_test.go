package serve_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/serve"
)

// A program that answers for images until it is interrupted, and then ends when the requests that
// it has are answered:
//
//	curl --data-binary @rose.jpg http://localhost:8080/predict
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := answer(ctx, "runs/flowers", "localhost:8080"); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func answer(ctx context.Context, dir, address string) error {
	run, err := bayes.Open(dir)
	if err != nil {
		return err
	}
	server, err := serve.New([]serve.Model{{Run: run}}, serve.Options{Report: func(err error) { fmt.Fprintln(os.Stderr, err) }})
	if err != nil {
		return err
	}
	defer server.Close()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return server.Serve(ctx, listener)
}
