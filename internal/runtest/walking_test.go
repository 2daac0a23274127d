package runtest

import (
	"context"
	"math"
	"path/filepath"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/mcmc"
	"github.com/pollen-ml/pollen/tensor"
)

// TestPotentialsInFloat32: if the network computes in float32, the errors of a potential of
// hundreds and of the log density are below a thousandth.
func TestPotentialsInFloat32(t *testing.T) {
	const examples, chains = 300, 4
	letters, err := datasets.Load("glyphs", datasets.Test, datasets.Options{})
	must(t, err)
	letters, err = letters.Slice(0, examples)
	must(t, err)
	b := graph.New(tensor.Float64)
	pixels := make([]float64, len(letters.Images))
	for i, v := range letters.Images {
		pixels[i] = float64(v)/128 - 1
	}
	x := b.Table("pixels", pixels, examples, 1, 28, 28)
	labels := b.Data("labels", tensor.Int32, examples)
	network, err := bayes.Spec{Network: "lenet-small", Method: mcmc.HMC{LeapfrogSteps: 1}}.Build(letters.Classes)
	must(t, err)
	potential := func() *graph.Node {
		loss := b.Apply(op.CrossEntropy{}, network.Apply(b, b.Cast(x)), labels)
		return b.Apply(op.Scale{Factor: examples}, loss)
	}
	wide := potential()
	parameters := b.Parameters() // layers ask for them in the same order again
	b.Hooks.Parameter = func(string, graph.Initializer, ...int) *graph.Node {
		p := parameters[0]
		parameters = parameters[1:]
		return b.Cast(p)
	}
	end := b.Within(tensor.Float32)
	narrow := potential()
	end()
	b.Output("wide", wide)
	b.Output("narrow", b.Cast(narrow))
	program, err := b.Compile()
	must(t, err)
	device := tensor.NewHost(0)
	defer device.Close()
	session, err := program.Load(device, graph.LoadOptions{Seed: 5, Chains: chains})
	must(t, err)
	defer session.Close()
	must(t, graph.Write(session, "labels", 0, 0, letters.Labels))
	must(t, session.Evaluate())
	for chain := range chains {
		var u, approximate [1]float64
		must(t, graph.Read(session, "wide", chain, 0, u[:]))
		must(t, graph.Read(session, "narrow", chain, 0, approximate[:]))
		t.Logf("chain %d: U is %.6f, in float32 %+.1e", chain, u[0], approximate[0]-u[0])
		if off := math.Abs(approximate[0] - u[0]); !(u[0] > 100 && off > 0 && off < 1e-3) {
			t.Errorf("chain %d: U is %v, and in float32 %v", chain, u[0], approximate[0])
		}
	}
}

// TestAllDataAreTheBatch: unless a specification says otherwise.
func TestAllDataAreTheBatch(t *testing.T) {
	data := dots(t, 30)
	spec := bayes.Spec{Network: "mlp-2", Method: mcmc.HMC{LeapfrogSteps: 2}, Epochs: 20}
	run, err := bayes.Fit(context.Background(), spec, trainOn(data), filepath.Join(t.TempDir(), "run"), with(t, 1))
	must(t, err)
	if got := run.Manifest().Spec.Batch; got != data.Len() {
		t.Errorf("a batch of %d, want all %d examples", got, data.Len())
	}
	for _, c := range []struct {
		method bayes.Method
		epochs int
	}{{mcmc.HMC{LeapfrogSteps: 2}, 2000}, {bayes.NUTS{}, 500}, {langevin.SGLD{}, 8}} {
		resolved, err := bayes.Spec{Network: "mlp-2", Method: c.method}.Resolve()
		must(t, err)
		if resolved.Epochs != c.epochs {
			t.Errorf("%s: %d epochs, want %d", bayes.MethodName(c.method), resolved.Epochs, c.epochs)
		}
	}
}
