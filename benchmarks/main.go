package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"

	"github.com/pollen-ml/pollen/internal/config"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		var gone lost
		if errors.As(err, &gone) {
			os.Exit(exitLost)
		}
		os.Exit(1)
	}
}

func command() *cobra.Command {
	var o options
	root := &cobra.Command{
		Use:           "benchmarks",
		Short:         "Time Pollen next to the same work in other frameworks, in one run",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	flags := root.PersistentFlags()
	flags.IntVar(&o.rounds, "rounds", 7, "rounds, in each of which every side runs")
	flags.IntVar(&o.threads, "threads", runtime.GOMAXPROCS(0), "threads of every side whose threads can be set")
	flags.StringVar(&o.json, "json", "", "write the figures to this file")
	flags.StringVar(&o.python, "python", "python3", "the Python that has PyTorch and JAX")
	flags.BoolVar(&o.quiet, "quiet-check", false, "refuse to time and to record on a busy machine (Linux)")
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		if err := cmp.Or(positive("rounds", o.rounds), positive("threads", o.threads), config.CheckParent("json", o.json)); err != nil {
			return err
		}
		if o.quiet {
			return quiet()
		}
		return nil
	}
	root.AddCommand(stepCommand(&o), chainsCommand(&o), predictCommand(&o), pretrainedCommand(&o), headsCommand(&o), kernelsCommand(&o))
	root.AddCommand(modelFlag(gpuCommand(&o), &o))
	return root
}

// stepNetworks are the networks in the table of training steps.
var stepNetworks = []string{"lenet-small", "lenet", "mlp-400-400", "mnist-64-64-256", "cnn", "resnet20-frn", "resnet20-frn-silu"}

// stepFlags are the grid of training steps.
type stepFlags struct {
	networks, samplers, peers []string
	batches                   []int
}

func stepCommand(o *options) *cobra.Command {
	var f stepFlags
	c := &cobra.Command{
		Use:   "step",
		Short: "Training steps, next to Gorgonia, PyTorch and JAX",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return steps(c.Context(), o, f) },
	}
	flags := c.Flags()
	flags.StringSliceVar(&f.networks, "networks", stepNetworks, "networks, as layers.New names them")
	flags.IntSliceVar(&f.batches, "batches", []int{100}, "batch sizes")
	flags.StringSliceVar(&f.samplers, "samplers", []string{"sgd", "sgld", "psgld"}, "sgd, sgld, psgld")
	flags.StringSliceVar(&f.peers, "peers", peerNames(), "the other frameworks")
	return c
}

func peerNames() []string {
	var names []string
	for _, p := range peers {
		names = append(names, p.name)
	}
	return names
}

func steps(ctx context.Context, o *options, f stepFlags) error {
	if err := known("peers", f.peers, peerNames()...); err != nil {
		return err
	}
	r := newRecord()
	fmt.Printf("training steps, float32, %s\n", r.Machine.describe())
	reported := map[string]bool{}
	for _, network := range f.networks {
		for _, batch := range f.batches {
			for _, sampler := range f.samplers {
				t := training{network, batch, sampler}
				if err := t.compare(ctx, o, f.peers, r, reported); err != nil {
					return err
				}
			}
		}
	}
	return r.write(o)
}

// compare times a training step on all sides and prints a line for each.
func (t training) compare(ctx context.Context, o *options, names []string, r *record, reported map[string]bool) (err error) {
	ours, err := newPollen(t, o.threads, 1)
	if err != nil {
		return err
	}
	sides := []*side{{name: "pollen", does: ours}}
	defer func() { err = cmp.Or(err, closeAll(sides)) }()
	if t.sampler != "sgd" { // the cost of sampling is measured in the same rounds
		plain, err := newPollen(training{t.network, t.batch, "sgd"}, o.threads, 1)
		if err != nil {
			return err
		}
		sides = append(sides, &side{name: "pollen, sgd", does: plain})
	}
	if sides, err = invite(sides, o, t, names, reported); err != nil {
		return err
	}
	if err := alternate(ctx, sides, o.rounds); err != nil {
		return err
	}
	r.add(fmt.Sprintf("step %s batch %d %s", t.network, t.batch, t.sampler), sides, float64(t.batch), "images")
	r.printFrom(len(r.Entries) - len(sides))
	return nil
}
