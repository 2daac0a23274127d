package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"

	"github.com/pollen-ml/pollen/devices"
	"github.com/pollen-ml/pollen/tensor"
)

func gpuCommand(o *options) *cobra.Command {
	var f gpuFlags
	c := &cobra.Command{
		Use:   "gpu",
		Short: "On a GPU: training steps of many chains, each call of a step, convolutions, updates; next to PyTorch and JAX",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return f.run(c.Context(), o) },
	}
	flags := c.Flags()
	flags.BoolVar(&f.onlyPredict, "predict", false, "print what the model of a GPU predicts for the steps and updates, without a GPU")
	flags.BoolVar(&f.resume, "resume", false, "skip what the file of --json already has, or names as failed")
	flags.IntVar(&f.gpu, "gpu", 0, "the GPU's number")
	flags.StringSliceVar(&f.work, "work", []string{"steps", "calls", "convolutions", "updates"}, "what to time, in this order; networks also exists")
	flags.StringSliceVar(&f.steps, "steps", []string{"mnist-64-64-256:100", "mlp-100:500", "mnist-64-64-256:1024"}, "networks with their batch sizes")
	flags.StringSliceVar(&f.samplers, "samplers", []string{"sgld"}, "sgd, sgld, psgld")
	flags.StringSliceVar(&f.precisions, "precisions", []string{"bf16", "tf32", "fp32"}, "of the matrix products, in this order")
	flags.StringSliceVar(&f.peers, "peers", []string{"torch-graph", "jax", "torch-compile", "torch"},
		"the other frameworks; torch-tune also exists, and takes a minute per network to prepare")
	flags.StringSliceVar(&f.variants, "variants", []string{"default"},
		"of Pollen's own steps: default, late (no programmatic dependent launch), line (calls in sequence), nowgmma, or VARIABLE=VALUE; + joins several")
	flags.IntSliceVar(&f.chains, "chains", []int{1, 64}, "numbers of chains")
	flags.IntSliceVar(&f.updates, "updates", []int{1 << 20, 50 << 20}, "parameters that are updated: within the second-level cache, and far beyond it")
	flags.IntSliceVar(&f.batches, "batches", []int{100, 1024}, "batch sizes of the convolutions")
	flags.StringSliceVar(&f.networks, "networks", []string{"mobilenet_v2:32", "resnet18:32", "efficientnet_lite0:32"},
		"for the work networks, with batch sizes: networks of torchvision and efficientnet_lite0, which --python exports, or ONNX files")
	flags.StringSliceVar(&f.networkWork, "network-work", []string{"features", "train"}, "for the work networks: features, train")
	flags.IntVar(&f.repetitions, "repetitions", 64, "how often the CUDA graph that times a call repeats it; with 0, the calls of networks are not timed")
	flags.StringVar(&f.peerDevice, "peer-device", "cuda", "the peers' device: cuda, or cpu to try them")
	flags.DurationVar(&f.patience, "patience", 90*time.Second, "the time limit of a side to prepare work, and for a round of it")
	flags.DurationVar(&f.budget, "budget", 8*time.Minute, "the time limit for all work, which is divided among its kinds; nothing is begun after it")
	return c
}

func (f gpuFlags) run(ctx context.Context, o *options) error {
	if err := f.validate(); err != nil {
		return err
	}
	r := &gpuRun{gpuFlags: f, options: *o, record: newRecord(), end: time.Now().Add(f.budget)}
	if f.onlyPredict {
		return r.predict()
	}
	works := map[string]func(context.Context) error{
		"steps": r.timeSteps, "updates": r.timeUpdates, "convolutions": r.timeConvolutions, "calls": r.timeCalls,
		"networks": r.timeNetworks,
	}
	if err := r.begin(); err != nil {
		return err
	}
	for _, s := range gpuServices() {
		if slices.Contains(f.peers, s.name) {
			r.services = append(r.services, s)
			defer s.close()
		}
	}
	for i, name := range f.work {
		r.deadline = time.Now().Add(share(f.work[i:], time.Until(r.end)))
		r.invited = r.services
		if err := works[name](ctx); err != nil {
			return errors.Wrap(err, name)
		}
	}
	if len(r.record.Left) > 0 {
		fmt.Printf("left out:\n  %s\n", strings.Join(r.record.Left, "\n  "))
	}
	return cmp.Or(r.failed, r.record.write(o))
}

// validate reports values that no flag has.
func (f gpuFlags) validate() error {
	var peers []string
	for _, s := range gpuServices() {
		peers = append(peers, s.name)
	}
	for _, name := range f.variants {
		if _, err := variantOf(name); err != nil {
			return err
		}
	}
	return cmp.Or(known("work", f.work, "steps", "calls", "convolutions", "updates", "networks"), known("network-work", f.networkWork, pretrainedWorks...),
		known("precisions", f.precisions, devices.Precisions()...), known("peers", f.peers, peers...),
		positive("chains", f.chains...), positive("updates", f.updates...), positive("batches", f.batches...))
}

// share returns the time that the first of these works may take: an equal part of the time left,
// where steps count three times.
func share(works []string, left time.Duration) time.Duration {
	weight := func(name string) time.Duration {
		if name == "steps" {
			return 3
		}
		return 1
	}
	var all time.Duration
	for _, name := range works {
		all += weight(name)
	}
	return left * weight(works[0]) / all
}

// timeSteps times the steps in each precision, and in each starts with the peers that need the
// least preparation.
func (r *gpuRun) timeSteps(ctx context.Context) error {
	for _, precision := range r.precisions {
		for turn := range turns {
			r.invited = nil
			for _, s := range r.services {
				if s.turn == turn && !s.gone {
					r.invited = append(r.invited, s)
				}
			}
			if turn > 0 && len(r.invited) == 0 {
				continue
			}
			if err := r.timeStepsIn(ctx, precision, turn); err != nil {
				return err
			}
		}
	}
	r.printScaling()
	return nil
}

func (r *gpuRun) timeStepsIn(ctx context.Context, precision string, turn int) error {
	return r.eachStep(func(t training, chains int) error {
		comparison := t.comparison(chains, precision)
		if r.late(comparison + r.invitedNames()) {
			return nil
		}
		if slices.Contains(r.variants, "default") || turn > 0 {
			request := peerRequest{
				Work: "train", Network: t.network, Batch: t.batch, Sampler: t.sampler, Chains: chains, Precision: precision,
				Rate: rate, Prior: priorStd,
			}
			open := func(device tensor.Device) (contestant, error) { return loadPollen(t, device, chains) }
			if err := r.compare(ctx, comparison, precision, open, request, float64(chains*t.batch), "images"); err != nil {
				return err
			}
			if err := r.addPrediction(t, chains, precision); err != nil {
				return err
			}
		}
		if turn > 0 {
			return nil
		}
		return r.timeVariants(ctx, t, chains, precision)
	})
}

// printScaling prints how images per second grow with the number of chains.
func (r *gpuRun) printScaling() {
	if len(r.chains) < 3 {
		return
	}
	for _, precision := range r.precisions {
		for _, step := range r.steps {
			for _, sampler := range r.samplers {
				t, err := parseTraining(step, sampler)
				if err != nil {
					return
				}
				fmt.Printf("chains of %s batch %d %s, %s:\n", t.network, t.batch, sampler, precision)
				for _, chains := range r.chains {
					if e := r.record.entry(t.comparison(chains, precision), "pollen"); e != nil {
						fmt.Printf("  %5d chains %10.4g images/s  %10.3f ms a step\n", chains, e.Rate, 1e3*e.Seconds.Median)
					}
				}
			}
		}
	}
}

// invitedNames names the peers that take part.
func (r *gpuRun) invitedNames() string {
	var names []string
	for _, s := range r.invited {
		names = append(names, s.name)
	}
	if names == nil {
		return ""
	}
	return " with " + strings.Join(names, " and ")
}
