package bayes

import (
	"context"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/internal/measure"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// load builds the program, checks that there is memory for the run, and writes the data into its
// session. All images go to the device once, as bytes; op.Minibatch gathers and normalises a
// minibatch there at each step, so that a step needs nothing from the host.
func (t *training) load(ctx context.Context, device tensor.Device) error {
	program, err := t.fitting(device)
	if err != nil {
		return err
	}
	if t.warmUp != nil {
		optimizer, err := t.warmUp.training.build(device)
		if err != nil {
			return errors.WithMessage(err, "pollen: warm start")
		}
		_, t.warmUp.chainBytes, _ = optimizer.Bytes()
	}
	if err := t.loadInputs(ctx, device); err != nil {
		return err
	}
	t.session, err = program.Load(device, graph.LoadOptions{
		Seed: t.spec.Seed, FirstChain: t.spec.FirstChain * t.spec.replicasOfEach(), Chains: t.spec.Chains * t.spec.replicasOfEach(),
	})
	if err != nil {
		return err
	}
	if err = t.give(t.session, t.inputs, t.rowLabels()); err != nil {
		t.session.Close()
	}
	return err
}

// loaded loads a training that keeps nothing, and calls use while its session is open.
func (t *training) loaded(ctx context.Context, use func(device tensor.Device) error) error {
	return t.on(func(device tensor.Device) error {
		if err := t.load(ctx, device); err != nil {
			return err
		}
		defer t.session.Close()
		return use(device)
	})
}

// begin prepares to observe, and then prepares the run's directory with open, which may restore
// what was observed before.
func (t *training) begin(ctx context.Context, device tensor.Device, open func(device tensor.Device) error) (err error) {
	t.observing()
	if t.probe, err = samples.NewProbe(device, t.parts.inputs(), t.parts.network.Apply); err != nil {
		return err
	}
	if t.watching != nil {
		inputs, err := t.features(ctx, device, t.watching.Pixels)
		if err != nil {
			return err
		}
		spacing := min(t.spacing(), max(1, t.plan.Thinning)) // so that few samples have an R-hat, too
		if t.measured.HeldOut, err = measure.NewHeldOut(device, inputs, t.parts.network, t.spec.Chains, spacing); err != nil {
			return err
		}
	}
	if err := t.newValidation(ctx, device); err != nil {
		return err
	}
	return open(device)
}

// observing prepares to observe. The metrics of minibatches are in units of U/N, and are multiplied
// by N.
func (t *training) observing() {
	scale := t.data.Len()
	if t.kind.traits().exact {
		scale = 1 // its metrics are in units of U
	}
	t.measured = measure.New(t.session.Program(), t.spec.Chains, scale)
}

// tryTask is the task of the events of try.
const tryTask = "try"

// try makes some steps, and reports an event after each window.
func (t *training) try(ctx context.Context, steps, window int) error {
	plan := langevin.Plan{Steps: steps, Thinning: steps}
	return plan.Run(ctx, t.session, window, func(p langevin.Window) error {
		t.observe(Event{Task: tryTask, On: t.data.Name, Done: p.To, Total: steps, Images: t.images(p)})
		return nil
	}, t.hooks...)
}
