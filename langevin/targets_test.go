package langevin_test

import (
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/tensor"
)

// TestTargets checks the fields of these tests.
func TestTargets(t *testing.T) {
	trial.CheckFields(
		t, trial.DiagonalGaussian{Smallest: 2, Largest: 2}, trial.DiagonalGaussian{Smallest: 1, Largest: 1000},
		trial.CorrelatedGaussian{A: 2, B: 1.2, C: 1}, trial.LogGamma{Shape: 1.5},
		bent{0.7, 0}, bent{0.7, 0.3}, wells{1.2, 0.4},
	)
}

// experiment is a sampler on a field, of one parameter "w.weight".
type experiment struct {
	sampler           langevin.Sampler
	dtype             tensor.DType // 0 means Float32
	field             trial.Field
	noise             float64
	uneven            bool
	dimensions        int
	chains            int
	prior             langevin.Prior
	dataSize          int
	step, temperature float64
	start             graph.Initializer
}

func (e experiment) load(t testing.TB) *graph.Session {
	t.Helper()
	return e.loadSchedule(t, []float64{e.step}, []float64{e.temperature})
}

// loadSchedule is load with tables of step sizes and temperatures.
func (e experiment) loadSchedule(t testing.TB, steps, temperatures []float64) *graph.Session {
	t.Helper()
	session, _ := e.build(t, func(b *graph.Builder, loss *graph.Node) error {
		return langevin.Attach(b, e.sampler, langevin.Posterior{DataSize: e.dataSize, Prior: e.prior}, loss, steps, temperatures)
	})
	return session
}

// build compiles and loads the experiment with the updates that attach adds. It also returns the
// number of the first stream after the loss's, which the first update uses.
func (e experiment) build(t testing.TB, attach func(b *graph.Builder, loss *graph.Node) error) (*graph.Session, uint16) {
	t.Helper()
	dtype := e.dtype
	if dtype == 0 {
		dtype = tensor.Float32
	}
	b := graph.New(dtype)
	w := b.Parameter(trial.ParameterName, e.start, e.dimensions)
	stream := b.Stream()
	loss := trial.Target{Field: e.field, Noise: e.noise, Uneven: e.uneven, DataSize: e.dataSize, Stream: stream}.Loss(b, w)
	if err := attach(b, loss); err != nil {
		t.Fatal(err)
	}
	if p, ok := e.sampler.(langevin.PSGLD); ok && p.Gamma == langevin.GammaHutchinson {
		stream++ // of the probe's signs
	}
	return trial.Load(t, b, graph.LoadOptions{Seed: trial.RunSeed, Chains: e.chains}, 1), stream + 1
}
