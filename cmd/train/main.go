// Command train trains Bayesian convolutional networks by Langevin dynamics and tells whether they know what they do not know.
//
// Without a command it does the main job: it trains one network on MNIST with SGD, SGLD and pSGLD, shows all three digits and letters, and
// prints who is how sure of what. See the commands' help for the rest.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"

	"github.com/pollen-ml/pollen/tensor"
)

// The exit codes: 1 when something fails, 2 for a command line that makes no sense, 130 when interrupted.
const (
	exitFailure     = 1
	exitUsage       = 2
	exitInterrupted = 130
)

func main() { os.Exit(run(os.Args[1:], newConsole())) }

// usageError is a mistake on the command line.
type usageError struct{ error }

func run(arguments []string, c *console) int {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	root := rootCommand(c)
	root.SetArgs(arguments)
	root.SetOut(c.out)
	root.SetErr(c.err)
	err := root.ExecuteContext(ctx)
	var usage usageError
	switch {
	case err == nil:
		return 0
	case stopped(err):
		c.remark("train: interrupted: what was sampled by then is in the run folder")
		return exitInterrupted
	case errors.As(err, &usage) || strings.HasPrefix(err.Error(), "unknown command"):
		c.remark("%v\nSee --help.", err)
		return exitUsage
	default:
		c.remark("%v", err)
		return exitFailure
	}
}

func rootCommand(c *console) *cobra.Command {
	root := &cobra.Command{
		Use:   "train",
		Short: "Bayesian convolutional networks by Langevin dynamics",
		Long: "Without a command: trains a network on MNIST with SGD, SGLD and pSGLD, shows all three digits and letters,\n" +
			"and prints who knows what it does not know.",
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	job := defaultMainJob()
	job.bindFlags(root.Flags())
	root.RunE = func(command *cobra.Command, _ []string) error { return job.run(command.Context(), c) }
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(fitCommand(c), evalCommand(c), oodCommand(c), devicesCommand(c), datasetsCommand(c))
	return root
}

// openDevice is the device of that name. There is no silent choice: auto says what it took.
func openDevice(name string, threads int, c *console) (tensor.Device, error) {
	if threads < 0 {
		return nil, errors.Errorf("train: %d threads, wants 0 for all or more", threads)
	}
	switch name {
	case "cpu", "auto":
		device := tensor.NewHost(threads)
		if name == "auto" {
			c.remark("device: %s", device.Name())
		}
		return device, nil
	default:
		return nil, errors.Errorf("train: device %q, wants auto or cpu", name)
	}
}

func devicesCommand(c *console) *cobra.Command {
	return &cobra.Command{
		Use: "devices", Short: "list the devices that can train", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			device := tensor.NewHost(0)
			defer device.Close()
			_, err := fmt.Fprintf(c.out, "cpu   %s\n", device.Name())
			return err
		},
	}
}
