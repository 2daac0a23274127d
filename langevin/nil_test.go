package langevin_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/tensor"
)

// TestNil: a nil sampler, nil arguments of Plan.Run, and the zero values of plans, posteriors and
// replica exchange are errors.
func TestNil(t *testing.T) {
	posterior := langevin.Posterior{DataSize: 3, Prior: langevin.Gaussian(1)}
	builder := func() *graph.Builder {
		b := graph.New(tensor.Float32)
		b.Parameter("w", nil, 3)
		return b
	}
	for want, err := range map[string]error{
		"the sampler must not be nil":           langevin.Attach(builder(), nil, posterior, nil, []float64{1}, []float64{1}),
		"langevin: the loss must not be nil":    langevin.Attach(builder(), langevin.SGLD{}, posterior, nil, []float64{1}, []float64{1}),
		"DataSize must be 1 to":                 langevin.Posterior{}.Validate(),
		"there must be at least 2 temperatures": langevin.ReplicaExchange{}.Validate(),
		"Steps must be at least 1":              langevin.Plan{}.Validate(),
		"observe must not be nil":               langevin.Plan{Steps: 1, Thinning: 1}.Run(t.Context(), nil, 1, nil),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// mistaken is a sampler of another package whose Update returns what mistake makes.
type mistaken struct {
	langevin.SGLD
	mistake *func(b *graph.Builder, parameter, gradient *graph.Node) *graph.Node
}

func (m mistaken) Update(b *graph.Builder, _ langevin.UpdateInputs, parameter, gradient *graph.Node) *graph.Node {
	return (*m.mistake)(b, parameter, gradient)
}

// TestMistakenSampler: a sampler that does not move its parameter is an error that names both.
func TestMistakenSampler(t *testing.T) {
	for want, mistake := range map[string]func(b *graph.Builder, parameter, gradient *graph.Node) *graph.Node{
		"sgld: Update of w must return the update's statistics, or call b.Fail, got nil": func(*graph.Builder, *graph.Node, *graph.Node) *graph.Node {
			return nil
		},
		"sgld: Update of w must apply a graph.Updater that changes w, got none": func(b *graph.Builder, _, gradient *graph.Node) *graph.Node {
			return b.Apply(op.Sum{}, gradient)
		},
		"its own reason": func(b *graph.Builder, _, _ *graph.Node) *graph.Node {
			b.Fail(errors.New("its own reason"))
			return nil
		},
	} {
		b := graph.New(tensor.Float32)
		loss := b.Apply(op.Sum{}, b.Apply(op.Squared{}, b.Parameter("w", nil, 3)))
		err := langevin.Attach(b, mistaken{mistake: &mistake}, langevin.Posterior{DataSize: 3}, loss, []float64{1}, []float64{1})
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("error %v, want one that ends in %q", err, want)
		}
	}
}

// TestPlanErrors: the error of a plan names the field and what it must be.
func TestPlanErrors(t *testing.T) {
	for want, p := range map[string]langevin.Plan{
		"Steps must be at least 1, got 0":                                                              {},
		"Thinning must be at least 1, which makes every step after BurnIn a sample, got 0":             {Steps: 10, BurnIn: 2},
		"BurnIn must be at least 0, got -1":                                                            {Steps: 10, BurnIn: -1, Thinning: 1},
		"Cycles must be 0 to the 10 Steps, got 11":                                                     {Steps: 10, Thinning: 1, Cycles: 11},
		"BurnIn + Thinning must be at most the 10 Steps, so that there is a sample, got 10 + 1":        {Steps: 10, BurnIn: 10, Thinning: 1},
		"BurnIn + Thinning must be at most the 5 steps of a cycle, so that it has a sample, got 3 + 3": {Steps: 10, BurnIn: 3, Thinning: 3, Cycles: 2},
	} {
		if err := p.Validate(); err == nil || err.Error() != "langevin: plan: "+want {
			t.Errorf("%+v: error %v, want %q", p, err, want)
		}
	}
}
