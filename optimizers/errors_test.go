package optimizers

import (
	"math"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

func TestHyperparameters(t *testing.T) {
	nan, infinite := math.NaN(), math.Inf(1)
	for _, o := range []Optimizer{
		SGD{-1}, SGD{nan}, SGD{infinite}, SGD{1e39},
		Momentum{1, 0}, Momentum{-0.1, 0}, Momentum{nan, 0}, Momentum{0.9, -1}, Momentum{1 - 1e-9, 0},
		Nesterov{1, 0}, Nesterov{-0.1, 0}, Nesterov{0.9, nan},
		Adagrad{0, 0}, Adagrad{-1, 0}, Adagrad{1e-8, -1}, Adagrad{1e-40, 0},
		Adadelta{1, 1e-6, 0}, Adadelta{0.9, 0, 0}, Adadelta{0.9, 1e-6, infinite},
		RMSProp{1.5, 1e-8, 0}, RMSProp{0.9, nan, 0}, RMSProp{0.9, 1e-8, -1},
		Adam{1, 0.999, 1e-8, 0}, Adam{0.9, 1, 1e-8, 0}, Adam{0.9, 0.999, 0, 0}, Adam{0.9, 0.999, 1e-8, -1},
		AdamW{-1, 0.999, 1e-8, 0}, AdamW{0.9, nan, 1e-8, 0}, AdamW{0.9, 0.999, infinite, 0}, AdamW{0.9, 0.999, 1e-8, nan},
	} {
		err := o.Validate()
		if err == nil || !strings.HasPrefix(err.Error(), "optimizers: "+o.Name()+": ") {
			t.Errorf("%T%+v: got %v, want an error that names the optimizer", o, o, err)
		}
		b := graph.New(tensor.Float32)
		w, g := b.Parameter("w", nil, 3), b.Data("g", tensor.Float32, 3)
		if o.Update(b, "w", w, g, b.Table("rates", []float64{1})) != nil || b.Err() == nil {
			t.Errorf("%T%+v: Update takes it", o, o)
		}
	}
}

func TestUpdateErrors(t *testing.T) {
	for name, c := range map[string]struct {
		says  string
		build func(b *graph.Builder, w, g, rates *graph.Node)
	}{
		"no rates":     {"the table of rates must not be nil", func(b *graph.Builder, w, g, _ *graph.Node) { SGD{}.Update(b, "w", w, g, nil) }},
		"rates":        {"the table of rates must be nil", func(b *graph.Builder, w, g, r *graph.Node) { Adadelta{0.9, 1e-6, 0}.Update(b, "w", w, g, r) }},
		"no gradient":  {"is nil", func(b *graph.Builder, w, _, r *graph.Node) { SGD{}.Update(b, "w", w, nil, r) }},
		"no parameter": {"parameter 0 must not be nil", func(b *graph.Builder, _, g, r *graph.Node) { Update(b, SGD{}, []*graph.Node{nil}, []*graph.Node{g}, r) }},
		"fewer": {"got 1 for 2", func(b *graph.Builder, w, g, r *graph.Node) {
			Update(b, SGD{}, []*graph.Node{w, w}, []*graph.Node{g}, r)
		}},
		"a name twice": {"taken", func(b *graph.Builder, w, g, r *graph.Node) {
			Momentum{}.Update(b, "w", w, g, r)
			Momentum{}.Update(b, "w", w, g, r)
		}},
		"an update each": {"only one op may update w", func(b *graph.Builder, w, g, r *graph.Node) {
			SGD{}.Update(b, "w", w, g, r)
			SGD{}.Update(b, "w", w, g, r)
		}},
		"no state": {"must be a parameter or state", func(b *graph.Builder, w, g, r *graph.Node) { SGD{}.Update(b, "g", g, w, r) }},
		"other shape": {"the parameter's", func(b *graph.Builder, w, _, r *graph.Node) {
			SGD{}.Update(b, "w", w, b.Data("other", tensor.Float32, 4), r)
		}},
		"other type": {"must hold float32, got float64", func(b *graph.Builder, w, _, r *graph.Node) {
			SGD{}.Update(b, "w", w, b.Data("other", tensor.Float64, 3), r)
		}},
		"a negative rate": {"the rate of step 1 must be at least 0 and finite in float32, got -0.1", func(b *graph.Builder, w, g, _ *graph.Node) {
			SGD{}.Update(b, "w", w, g, b.Table("uphill", []float64{0.1, -0.1}))
		}},
		"a rate that is not a number": {"got NaN", func(b *graph.Builder, w, g, _ *graph.Node) {
			SGD{}.Update(b, "w", w, g, b.Table("unknown", []float64{math.NaN()}))
		}},
		"rates with two axes": {"one axis", func(b *graph.Builder, w, g, _ *graph.Node) {
			SGD{}.Update(b, "w", w, g, b.Data("other", tensor.Float32, 2, 2))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := graph.New(tensor.Float32)
			c.build(b, b.Parameter("w", nil, 3), b.Data("g", tensor.Float32, 3), b.Table("rates", []float64{1}))
			if _, err := b.Compile(); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want an error with %q", err, c.says)
			}
		})
	}
}

// A GPU finds all it needs among the arguments.
func TestLaunches(t *testing.T) {
	b := graph.New(tensor.Float32)
	w, g := b.Parameter("conv1.weight", nil, 3), b.Data("g", tensor.Float32, 3)
	Update(b, Adam{0.5, 0.25, 1, 2}, []*graph.Node{w}, []*graph.Node{g}, b.Table("rates", []float64{1, 2}))
	p, err := b.Compile()
	if err != nil {
		t.Fatal(err)
	}
	dump := p.Dump()
	for _, want := range []string{
		"adam_update_f32", "conv1.weight.first moment", "conv1.weight.second moment",
		// parameters, rates, and in float64 betas, log(betas), epsilon, weight decay
		" 3 2 0x3fe0000000000000 0x3fd0000000000000 0xbfe62e42fefa39ef 0xbff62e42fefa39ef 0x3ff0000000000000 0x4000000000000000  ; conv1.weight: adam update",
	} {
		if !strings.Contains(dump, want) {
			t.Errorf("no %q in\n%s", want, dump)
		}
	}
}

func TestUpdateNil(t *testing.T) {
	b := graph.New(tensor.Float32)
	w := b.Parameter("w", nil, 3)
	Update(b, nil, []*graph.Node{w}, []*graph.Node{w}, nil)
	if err := b.Err(); err == nil || !strings.Contains(err.Error(), "the optimizer must not be nil") {
		t.Error(err)
	}
}
