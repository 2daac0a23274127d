package mcmc

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// countProposals is the header with the number of the proposal instead of the step: header ->
// header.
type countProposals struct{ evaluations int }

func (countProposals) Name() string               { return "count proposals" }
func (countProposals) DType() tensor.DType        { return tensor.Uint64 }
func (countProposals) InputType(int) tensor.DType { return tensor.Uint64 }

func (countProposals) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if len(in) != 1 {
		return nil, errors.Errorf("must have one input, the header, got %d", len(in))
	}
	return in[0], nil
}

func (c countProposals) Lower(l *graph.Lowering) {
	l.Emit("count_proposals", tensor.Block(1), tensor.Single(func(a *tensor.Args) {
		out := tensor.Slice[uint64](a, 0)
		copy(out, tensor.Slice[uint64](a, 1))
		out[graph.HeaderStep] /= uint64(c.evaluations)
	}), l.Out(), l.In(0), tensor.Int(c.evaluations))
}
