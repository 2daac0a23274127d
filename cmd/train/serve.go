package main

import (
	"context"
	"net"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"

	"github.com/pollen-ml/pollen"
	"github.com/pollen-ml/pollen/serve"
)

func serveCommand(c *console) *cobra.Command {
	var device deviceFlags
	var options serve.Options
	var address string
	var level, familiar float64
	var withoutDamaged bool
	command := &cobra.Command{
		Use: "serve RUN", Short: "answer for pictures over HTTP, with a page to drop one on",
		Long: "Answers for pictures as predict does: POST /predict takes an image, a form with files or JSON; GET / is a page to drop an image\n" +
			"on; /run, /health and /metrics say what is served and how it goes. Ctrl-C ends it when the requests under way are answered.",
		Example: "  train serve runs/flowers\n  curl --data-binary @rose.jpg localhost:8080/predict",
		Args: func(_ *cobra.Command, arguments []string) error {
			if len(arguments) != 1 {
				return usage("train: serve wants the folder of one run")
			}
			return nil
		},
	}
	f := command.Flags()
	f.StringVar(&address, "address", "localhost:8080", "host and port to listen on; an empty host is all of the machine's")
	f.Float64Var(&level, "level", 0.9, "probability with which the plausible classes hold the true one")
	f.Float64Var(&familiar, "familiar", 0.95, "share of pictures like those trained on that is called familiar")
	f.IntVar(&options.Batch, "batch", 0, "images that the network sees at once (default 8)")
	f.IntVar(&options.MaxBody, "max-body", 0, "bytes of a request, at most (default 16 MiB)")
	f.IntVar(&options.MaxPixels, "max-pixels", 0, "pixels of a picture, at most (default 25 million)")
	f.DurationVar(&options.Timeout, "timeout", 0, "how long a request may take to arrive, and to be answered (default 20s)")
	device.bind(f)
	bindWithoutDamaged(f, &withoutDamaged)
	command.RunE = func(command *cobra.Command, arguments []string) error {
		options.Report = func(err error) { c.remark("serve: %v", err) }
		return runServe(command.Context(), arguments[0], address, device, options, c,
			append(withDamaged(withoutDamaged), pollen.WithLevel(level), pollen.WithFamiliarRate(familiar), pollen.WithObserver(c.observer("serve")))...)
	}
	return command
}

func runServe(ctx context.Context, folder, address string, device deviceFlags, options serve.Options, c *console, more ...pollen.Option) error {
	opened, err := device.open(c)
	if err != nil {
		return err
	}
	defer opened.Close()
	run, err := pollen.Open(folder, append(more, pollen.WithDevice(opened))...)
	if err != nil {
		return err
	}
	if err := remarkUnfinished(run, c); err != nil {
		return err
	}
	server, err := serve.New(run, options)
	if err != nil {
		return err
	}
	defer server.Close()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return errors.Wrap(err, "train: serve")
	}
	c.remark("http://%s answers by %s; Ctrl-C ends it", listener.Addr(), folder)
	err = server.Serve(ctx, listener)
	if err == nil {
		c.remark("train: no more requests; those under way were answered")
	}
	return err
}
