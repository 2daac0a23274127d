package cuda_test

import (
	"math"
	"testing"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/cudatest"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/optest"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/mcmc"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/tensor"
)

// rare returns updates of methods around samplers, with ops that no sampler itself has.
func rare() []update {
	rates := []float64{0.002, 0.001}
	layers := map[string]langevin.Prior{"a": langevin.Laplace(1), "c": langevin.Gaussian(1)}
	posterior := langevin.Posterior{DataSize: 50, Prior: langevin.StudentT(3, 1), Layers: layers}
	// Errors of what is attached are the builder's too, whose Compile returns them.
	return []update{
		{"replica exchange", func(b *graph.Builder) {
			exchange := langevin.ReplicaExchange{Temperatures: []float64{1, 2}, StepFactors: []float64{1, 1.5}, Every: 2, Minibatches: 1}
			_, _ = exchange.Attach(b, langevin.SGLD{}, posterior, quadratic(b), rates)
		}, 1e-6, ""},
		{"control variates", func(b *graph.Builder) {
			_, _ = langevin.ControlVariates{BatchSize: 10}.Attach(b, langevin.SGLD{}, posterior, quadratic(b), rates, []float64{1, 1})
		}, 1e-6, ".anchor slope"},
		{"the potential's gradient", func(b *graph.Builder) {
			potential := posterior.Potential(b, quadratic(b))
			parameters := b.Parameters()
			optimizers.Update(b, optimizers.SGD{}, parameters, b.Gradients(potential, parameters...), b.Table("rates", rates))
		}, 1e-6, ""},
		{"psgld with exact gamma", func(b *graph.Builder) {
			start := func(_ uint64, chain uint32, _ uint16, _ tensor.Shape, values []float64) {
				for i := range values {
					values[i] = float64(i) + float64(chain)/2
				}
			}
			w := b.Parameter("w.weight", start, 6)
			sampler := langevin.PSGLD{Alpha: 0.6, Lambda: 0.1, Gamma: langevin.GammaExact}
			plain := langevin.Posterior{DataSize: 50, Prior: langevin.Gaussian(1)}
			_ = langevin.Attach(b, sampler, plain, b.Apply(op.SquaredError{}, w, b.State("target", nil, 6)), rates, []float64{1, 1})
		}, 1e-4, ""},
	}
}

func TestRareUpdatesAreTheHosts(t *testing.T) {
	device := cudatest.GPU(t, cuda.Options{})
	host := tensor.NewHost(1)
	defer host.Close()
	compareAll(t, rare(), device, host)
	counted := update{"counted proposals", func(b *graph.Builder) {
		header := mcmc.MALA{Test: mcmc.AcceptanceMinibatch}.BatchHeader(b)
		b.Record("sum", b.Apply(op.Sum{}, b.Apply(op.Noise{Stream: b.Stream(), As: op.ViewAs(3, 5)}, header)))
	}, 0, ""}
	t.Run(counted.name, func(t *testing.T) { compareUpdates[float64](t, counted, device, host, 0) }) // proposals are in float64
}

// TestGradientsInParts: if a channel has many terms, several blocks add up parts of the gradient of
// a bias or of a threshold.
func TestGradientsInParts(t *testing.T) {
	device := cudatest.GPU(t, cuda.Options{})
	host := tensor.NewHost(1)
	defer host.Close()
	t.Run("float32", func(t *testing.T) { gradientsInParts[float32](t, device, host) })
	t.Run("float64", func(t *testing.T) { gradientsInParts[float64](t, device, host) })
}

func gradientsInParts[T float32 | float64](t *testing.T, device, host tensor.Device) {
	const batch, channels, width = 40, 3, 500
	gradients := func(device tensor.Device) []float64 {
		dtype := tensor.DTypeOf[T]()
		b := graph.New(dtype)
		x := b.Data("x", dtype, batch, channels, width)
		bias, bound := b.Parameter("bias", nil, channels), b.Parameter("bound", nil, channels)
		y := b.Apply(op.Threshold{}, b.Apply(op.BiasAdd{}, x, bias), bound)
		loss := b.Apply(op.SquaredError{}, y, b.Data("target", dtype, batch, channels, width))
		for i, g := range b.Gradients(loss, bias, bound) {
			b.Output([]string{"bias gradient", "bound gradient"}[i], g)
		}
		s := load(t, b, device, 1)
		values := make([]T, batch*channels*width)
		for i := range values {
			values[i] = T(math.Sin(float64(i * i % 997)))
		}
		var all []float64
		for _, err := range []error{graph.Write(s, "x", 0, 0, values), graph.Write(s, "target", 0, 0, make([]T, len(values))), s.Run(1)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"bias gradient", "bound gradient"} {
			got := make([]T, channels)
			if err := graph.Read(s, name, 0, 0, got); err != nil {
				t.Fatal(err)
			}
			for _, v := range got {
				all = append(all, float64(v))
			}
		}
		return all
	}
	got, want := gradients(device), gradients(host)
	if err := optest.Close(got, want, optest.SumTol(tensor.DTypeOf[T](), batch*width, want)); err != nil {
		dump(t, err)
		t.Error(err)
	}
}
