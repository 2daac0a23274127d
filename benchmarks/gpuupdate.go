package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/tensor"
)

// timeUpdates times pSGLD's update, and a copy of memory on the same GPU. The record has its rate
// as a fraction of the fastest copy's.
func (r *gpuRun) timeUpdates(ctx context.Context) error {
	for _, n := range r.updates {
		copying := fmt.Sprintf("copy of %d floats", n)
		if r.late(copying) {
			continue
		}
		open := func(device tensor.Device) (contestant, error) { return newGPUCopy(device, 4*n) }
		if err := r.compare(ctx, copying, "fp32", open, peerRequest{Work: "copy", Parameters: n}, 8*float64(n)/1e9, "GB"); err != nil {
			return err
		}
		const floats = 5 // theta, v and g are read, theta and v written
		open = func(device tensor.Device) (contestant, error) { return loadUpdate(device, n) }
		updating, request := fmt.Sprintf("psgld update of %d parameters", n), peerRequest{Work: "update", Parameters: n}
		if err := r.compare(ctx, updating, "fp32", open, request, 4*floats*float64(n)/1e9, "GB"); err != nil {
			return err
		}
		var copied float64 // of any side: small copies take as long as their launch
		for _, e := range r.record.Entries {
			if e.Case == copying {
				copied = max(copied, e.Rate)
			}
		}
		for i := range r.record.Entries {
			if e := &r.record.Entries[i]; e.Case == updating && copied > 0 {
				e.Fraction = e.Rate / copied
			}
		}
	}
	return r.record.save(r.options.json)
}

// updateProgram returns a step that is pSGLD's update of n parameters.
func updateProgram(n int) (*graph.Program, error) {
	b := graph.New(tensor.Float32)
	sample(b, langevin.PSGLD{Alpha: psgldAlpha, Lambda: psgldLambda, Gamma: langevin.GammaNone}, b.Parameter("w", nil, n), b.State("gradient", nil, n))
	return b.Compile()
}

func loadUpdate(device tensor.Device, n int) (contestant, error) {
	program, err := updateProgram(n)
	if err != nil {
		return nil, err
	}
	p := &pollen{device: device}
	p.session, err = program.Load(device, graph.LoadOptions{Seed: 1})
	return p, err
}

// gpuCopy copies memory on the GPU, by keeping the memory of a workload's only chain.
type gpuCopy struct {
	device tensor.Device
	runner tensor.Runner
}

func newGPUCopy(device tensor.Device, bytes int) (contestant, error) {
	s := tensor.Workload{Chains: 1, Keeps: true}
	s.Bytes[tensor.Chain] = bytes
	runner, err := device.Load(s)
	return &gpuCopy{device, runner}, err
}

func (g *gpuCopy) run(steps int) (float64, error) {
	return timed(func() error {
		for range steps {
			if err := g.runner.Keep(); err != nil {
				return err
			}
		}
		return g.runner.Run(0)
	})
}

func (g *gpuCopy) close() error { return cmp.Or(g.runner.Close(), g.device.Close()) }
