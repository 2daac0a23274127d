package langevin

import (
	"cmp"
	"context"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// Anchor is the Hook that moves the anchors of ControlVariates in every chain of a session. The
// anchors are part of the chains' states.
type Anchor struct {
	every int // steps between two moves; 0 for a single one before the first step
	epoch int // steps of an epoch
}

var _ Hook = (*Anchor)(nil)

// Due implements Hook.
func (a *Anchor) Due(steps int) bool {
	if a.every == 0 {
		return steps == 0
	}
	return steps%a.every == 0
}

// OnStep implements Hook. It sets each chain's anchor to the chain's parameters, and the anchor's
// gradient to the mean of an epoch's gradients there. For this it runs an epoch of steps and then
// restores the chains.
func (a *Anchor) OnStep(ctx context.Context, s *graph.Session) error {
	if s.Program().DType() == tensor.Float64 {
		return refresh[float64](ctx, a, s)
	}
	return refresh[float32](ctx, a, s)
}

// refresh is OnStep in the program's float. It keeps all chains' states in memory while the epoch
// runs.
func refresh[T float32 | float64](ctx context.Context, a *Anchor, s *graph.Session) error {
	steps, states := s.Steps(), make([][]byte, s.Chains())
	anchors := make([][][]T, s.Chains()) // by chain and parameter
	for chain := range states {
		states[chain] = make([]byte, s.ChainBytes())
		if err := s.Save(chain, states[chain]); err != nil {
			return errors.Wrap(err, "langevin: anchor")
		}
		anchor, err := readAll[T](s, chain, "")
		if err != nil {
			return err
		}
		anchors[chain] = anchor
	}
	// The sum needs an epoch of steps at fixed anchors. restart undoes these steps, so that the
	// chains are unaffected.
	sums, err := sumEpoch(ctx, a, s, states, anchors)
	err = cmp.Or(err, restart(s, states, steps))
	for chain := 0; err == nil && chain < s.Chains(); chain++ {
		for _, sum := range sums[chain] {
			for i := range sum {
				sum[i] /= T(a.epoch)
			}
		}
		if err = writeAll(s, chain, anchorSuffix, anchors[chain]); err == nil {
			err = writeAll(s, chain, anchorGradientSuffix, sums[chain])
		}
	}
	return err
}

// sumEpoch sums the gradients of an epoch's minibatches at the anchors. It leaves the chains at the
// end of that epoch; the caller must restore them.
func sumEpoch[T float32 | float64](
	ctx context.Context, a *Anchor, s *graph.Session, states [][]byte, anchors [][][]T,
) (sums [][][]T, err error) {
	epoch := uint64(a.epoch)
	// Begin at the start of an epoch, so that its minibatches cover all data once.
	if err := restart(s, states, (s.Steps()+epoch-1)/epoch*epoch); err != nil {
		return nil, err
	}
	sums = make([][][]T, len(anchors))
	for chain, anchor := range anchors {
		for _, values := range anchor {
			sums[chain] = append(sums[chain], make([]T, len(values)))
		}
		if err := writeAll(s, chain, anchorSuffix, anchor); err != nil {
			return nil, err
		}
		// While the sums are made, the anchor's gradient must be a number: the initial NaN would
		// stop the run.
		for _, suffix := range []string{anchorGradientSuffix, anchorSumSuffix} {
			if err := writeAll(s, chain, suffix, sums[chain]); err != nil {
				return nil, err
			}
		}
	}
	const part = 10 // steps between two looks at the context
	pace := func(int, int) (int, error) { return part, ctx.Err() }
	// A Run makes at most graph.MetricRows steps.
	for left := a.epoch; left > 0; left -= graph.MetricRows {
		if err := s.RunPaced(min(left, graph.MetricRows), pace); err != nil {
			return nil, err
		}
	}
	for chain := range sums {
		if sums[chain], err = readAll[T](s, chain, anchorSumSuffix); err != nil {
			return nil, err
		}
	}
	return sums, nil
}

// readAll reads, for each parameter, the parameter or its state with the given suffix.
func readAll[T float32 | float64](s *graph.Session, chain int, suffix string) ([][]T, error) {
	var all [][]T
	for _, p := range s.Program().Parameters() {
		values := make([]T, p.Shape.Elements())
		if err := graph.Read(s, p.Name+suffix, chain, 0, values); err != nil {
			return nil, errors.Wrap(err, "langevin: anchor")
		}
		all = append(all, values)
	}
	return all, nil
}

// writeAll writes what readAll reads.
func writeAll[T float32 | float64](s *graph.Session, chain int, suffix string, all [][]T) error {
	for i, p := range s.Program().Parameters() {
		if err := graph.Write(s, p.Name+suffix, chain, 0, all[i]); err != nil {
			return errors.Wrap(err, "langevin: anchor")
		}
	}
	return nil
}
