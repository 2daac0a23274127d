package command

import (
	"context"
	"net"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"

	"github.com/pollen-ml/pollen"
	"github.com/pollen-ml/pollen/internal/config"
	"github.com/pollen-ml/pollen/serve"
)

// serveFlags are the flags of serve.
type serveFlags struct {
	device                    deviceFlags
	options                   serve.Options
	address                   string
	level, inDistributionRate float64
	withoutDamaged            bool
}

func serveCommand(c *console) *cobra.Command {
	var s serveFlags
	command := &cobra.Command{
		Use: "serve RUN", Short: "Serve predictions over HTTP, with a web page",
		Long: "Serves the answers of predict over HTTP. POST /predict takes an image, a form with files, or JSON; GET / is a page for\n" +
			"dropping images on; GET /run describes the run, /health reports readiness, /metrics has figures for Prometheus. Ctrl-C\n" +
			"stops the server after the pending requests.",
		Example: "  pollen serve runs/flowers\n  curl --data-binary @rose.jpg localhost:8080/predict",
		Args: func(_ *cobra.Command, arguments []string) error {
			if len(arguments) != 1 {
				return usage("pollen: serve needs the directory of one run")
			}
			return nil
		},
		RunE: func(command *cobra.Command, arguments []string) error {
			if err := config.RejectZeros(command.Flags()); err != nil {
				return err
			}
			return s.run(command.Context(), arguments[0], c)
		},
	}
	f := command.Flags()
	f.StringVar(&s.address, "address", "localhost:8080", "host and port to listen on; \":8080\" listens on all interfaces")
	f.Float64Var(&s.level, "level", 0.9, "probability that a prediction set contains the true class")
	f.Float64Var(&s.inDistributionRate, "in-distribution-rate", 0.95, "fraction of images like the training images to report as in distribution")
	f.IntVar(&s.options.Batch, "batch", 0, "images per forward pass (default 8)")
	f.IntVar(&s.options.MaxBody, "max-body", 0, "maximum bytes of a request (default 16 MiB)")
	f.IntVar(&s.options.MaxPixels, "max-pixels", 0, "maximum pixels of an image (default 25 million)")
	f.DurationVar(&s.options.Timeout, "timeout", 0, "maximum time to receive a request, and again to answer it (default 20s)")
	s.device.bind(f)
	bindWithoutDamaged(f, &s.withoutDamaged)
	s.options.Report = func(err error) { c.remark("serve: %v", err) }
	return command
}

func (s *serveFlags) run(ctx context.Context, dir string, c *console) error {
	opened, err := s.device.open(c)
	if err != nil {
		return err
	}
	defer opened.Close()
	run, err := pollen.Open(dir, append(withoutDamagedIf(s.withoutDamaged), pollen.WithDevice(opened), pollen.WithLevel(s.level),
		pollen.WithInDistributionRate(s.inDistributionRate), pollen.WithObserver(c.observer("serve")))...)
	if err != nil {
		return err
	}
	if err := remarkUnfinished(run, c); err != nil {
		return err
	}
	server, err := serve.New(run, s.options)
	if err != nil {
		return err
	}
	defer server.Close()
	if err := remarkLevels(run, s.level, s.inDistributionRate, c); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", s.address)
	if err != nil {
		return errors.Wrap(err, "pollen: serve")
	}
	c.remark("serving %[2]s at http://%[1]s; stop with Ctrl-C", listener.Addr(), dir)
	err = server.Serve(ctx, listener)
	if err == nil {
		c.remark("pollen: stopped; pending requests were answered")
	}
	return err
}
