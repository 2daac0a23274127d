package langevin_test

import (
	"fmt"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/tensor"
)

// given is a loss of pairs of a parameter and an input, its gradient: a step is then only an
// update.
type given struct{}

func (given) Name() string                               { return "given gradient" }
func (given) Shape([]tensor.Shape) (tensor.Shape, error) { return tensor.Shape{}, nil }

func (given) Lower(l *graph.Lowering) {
	arguments := []tensor.Argument{l.Out()}
	for i := range l.Shapes {
		arguments = append(arguments, l.In(i))
	}
	l.Emit("test", tensor.Threads(1), tensor.Single(func(*tensor.Args) {}), arguments...)
}

func (given) Gradients(_ *graph.Builder, in []*graph.Node, _, _ *graph.Node) []*graph.Node {
	var gradients []*graph.Node
	for i := range in {
		gradients = append(gradients, in[i-i%2+1])
	}
	return gradients
}

// BenchmarkUpdate measures the samplers' steps of a million parameters on one thread, next to a
// copy that moves the same number of bytes. Time and allocations are per step.
func BenchmarkUpdate(b *testing.B) {
	const parameters, steps = 1 << 20, 16
	for _, c := range []struct {
		name        string
		sampler     langevin.Sampler
		prior       langevin.Prior
		temperature float64
		bytes       int // read and written, for each parameter
	}{
		{"sgld", langevin.SGLD{}, langevin.Gaussian(1), 1, 12},
		{"sgld/laplace", langevin.SGLD{}, langevin.Laplace(1), 1, 12},
		{"sgld/student", langevin.SGLD{}, langevin.StudentT(3, 1), 1, 12},
		{"sgld/cold", langevin.SGLD{}, langevin.Gaussian(1), 0, 12},
		{"psgld", langevin.PSGLD{Alpha: 0.99, Lambda: 1e-5, Gamma: langevin.GammaNone}, langevin.Gaussian(1), 1, 20},
		// The kinetic temperature reads the velocities once more.
		{"sghmc", langevin.SGHMC{Friction: 0.1}, langevin.Gaussian(1), 1, 24},
		{"sghmc/cold", langevin.SGHMC{Friction: 0.1}, langevin.Gaussian(1), 0, 24},
		{"baoab", langevin.BAOAB{Friction: 0.1}, langevin.Gaussian(1), 1, 24},
		{"ubu", langevin.UBU{Friction: 0.1}, langevin.Gaussian(1), 1, 24},
		{"sgnht/euler", langevin.SGNHT{Friction: 0.1, Splitting: langevin.SplittingEuler, Coupling: 1e-3}, langevin.Gaussian(1), 1, 24},
		{"sgnht/badodab", langevin.SGNHT{Friction: 0.1, Splitting: langevin.SplittingBADODAB, Coupling: 1e-3}, langevin.Gaussian(1), 1, 36},
		{"sgnht/euler per element", langevin.SGNHT{Friction: 0.1, Splitting: langevin.SplittingEuler, PerElement: true, Coupling: 1e-3}, langevin.Gaussian(1), 1, 32},
		{"sgnht/badodab per element", langevin.SGNHT{Friction: 0.1, Splitting: "badodab", PerElement: true, Coupling: 1e-3}, langevin.Gaussian(1), 1, 32},
		{"smile", langevin.SMILE{Friction: 0.1}, langevin.Gaussian(1), 1, 36},
		{"ccadl", langevin.CCAdL{Friction: 0.1, Alpha: 0.999, Coupling: 1e-3}, langevin.Gaussian(1), 1, 56},
	} {
		b.Run(c.name, func(b *testing.B) {
			session := givenSession(b, c.sampler, c.prior, c.temperature, parameters)
			b.SetBytes(int64(c.bytes) * parameters)
			b.ResetTimer()
			for done := 0; done < b.N; done += steps {
				if err := session.Run(min(steps, b.N-done)); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/parameters, "ns/parameter")
		})
	}
	for _, bytes := range []int{12, 20, 24} {
		b.Run(fmt.Sprintf("copy of %d bytes", bytes), func(b *testing.B) {
			from, to := make([]byte, bytes/2*parameters), make([]byte, bytes/2*parameters)
			b.SetBytes(int64(bytes) * parameters)
			for range b.N {
				copy(to, from)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/parameters, "ns/parameter")
		})
	}
}

func givenSession(tb testing.TB, sampler langevin.Sampler, prior langevin.Prior, temperature float64, parameters int) *graph.Session {
	tb.Helper()
	b := graph.New(tensor.Float32)
	w := b.Parameter("w.weight", nil, parameters)
	loss := b.Apply(given{}, w, b.Data("gradient", tensor.Float32, parameters))
	posterior := langevin.Posterior{DataSize: 60000, Prior: prior}
	if err := langevin.Attach(b, sampler, posterior, loss, []float64{1e-9}, []float64{temperature}); err != nil {
		tb.Fatal(err)
	}
	session := trial.Load(tb, b, graph.LoadOptions{Seed: 1}, 1)
	gradient := make([]float32, parameters)
	for i := range gradient {
		gradient[i] = 1e-4 * (float32(i%7) - 3)
	}
	if err := graph.Write(session, "gradient", 0, 0, gradient); err != nil {
		tb.Fatal(err)
	}
	return session
}
