package langevin_test

import (
	"math"
	"testing"

	"github.com/pollen-ml/pollen/cuda/cudatest"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// field is a potential of a parameter's elements.
type field interface {
	// at returns the potential, and puts its slope into slope.
	at(theta, slope []float64) float64
	// potential is the same as a graph of a parameter of one axis, of ops that every device has kernels for.
	potential(b *graph.Builder, w *graph.Node) *graph.Node
}

// bowl is the sum of k theta^2/2 over the elements, whose curvatures k take classes values in turn, from Smallest to Largest in equal
// ratios.
type bowl struct{ Smallest, Largest float64 }

const classes = 8

func (f bowl) curvature(i int) float64 {
	return f.Smallest * math.Pow(f.Largest/f.Smallest, float64(i%classes)/(classes-1))
}

func (f bowl) at(theta, slope []float64) float64 {
	total := 0.0
	var curvatures [classes]float64
	for i := range curvatures {
		curvatures[i] = f.curvature(i)
	}
	for i, x := range theta {
		k := curvatures[i%classes]
		slope[i] = k * x
		total += k * x * x / 2
	}
	return total
}

func (f bowl) potential(b *graph.Builder, w *graph.Node) *graph.Node {
	squares := b.Apply(op.Squared{}, w)
	if f.Smallest == f.Largest {
		return b.Apply(op.Scale{Factor: f.Smallest / 2}, b.Apply(op.Sum{}, squares))
	}
	halves := make([]float64, graph.ShapeOf(w).Elements())
	for i := range halves {
		halves[i] = f.curvature(i) / 2
	}
	return b.Apply(op.Sum{}, b.Apply(op.Multiply{}, squares, b.Table(w.Name()+" half curvatures", halves)))
}

// valley is the sum of (A x^2 + 2 B x y + C y^2)/2 over pairs of neighbours: a Gaussian with correlations.
type valley struct{ A, B, C float64 }

func (f valley) at(theta, slope []float64) float64 {
	total := 0.0
	for i := 0; i < len(theta); i += 2 {
		x, y := theta[i], theta[i+1]
		slope[i], slope[i+1] = f.A*x+f.B*y, f.B*x+f.C*y
		total += (x*slope[i] + y*slope[i+1]) / 2
	}
	return total
}

func (f valley) potential(b *graph.Builder, w *graph.Node) *graph.Node {
	return pairs(b, w, f.A/2, f.B/2, f.B/2, f.C/2)
}

// pairs is the sum of v.M v over the pairs v of neighbours, M being given row by row.
func pairs(b *graph.Builder, w *graph.Node, matrix ...float64) *graph.Node {
	v := b.Apply(op.ViewAs(graph.ShapeOf(w).Elements()/2, 2), w)
	m := b.Apply(op.ViewAs(2, 2), b.Table(w.Name()+" matrix of pairs", matrix))
	return b.Apply(op.Sum{}, b.Apply(op.Multiply{}, v, b.Apply(op.MatMul{}, v, m)))
}

// logGamma is the sum of exp(theta) - Shape theta: exp(-U/T) is the density of log(T X), X from the gamma distribution of shape Shape/T. It
// is skewed to the left.
type logGamma struct{ Shape float64 }

func (f logGamma) at(theta, slope []float64) float64 {
	total := 0.0
	for i, x := range theta {
		slope[i] = math.Exp(x) - f.Shape
		total += math.Exp(x) - f.Shape*x
	}
	return total
}

func (f logGamma) potential(b *graph.Builder, w *graph.Node) *graph.Node {
	return b.Apply(op.Sum{}, b.Apply(op.Subtract{}, b.Apply(op.Exp{}, w), b.Apply(op.Scale{Factor: f.Shape}, w)))
}

// target is the loss Field/N, whose gradient carries noise as a minibatch's does: on the gradient of U it has standard deviation Noise.
type target struct {
	field    field
	noise    float64
	dataSize int
	stream   uint16
}

// loss is (U + Noise z.w)/N, with the normals z of the stream, new ones in each step.
func (f target) loss(b *graph.Builder, w *graph.Node) *graph.Node {
	u := f.field.potential(b, w)
	if f.noise > 0 {
		z := b.Apply(op.Noise{Stream: f.stream, As: op.ViewAs(graph.ShapeOf(w)...)}, b.Header())
		slope := b.Apply(op.Sum{}, b.Apply(op.Multiply{}, w, z))
		u = b.Apply(op.Add{}, u, b.Apply(op.Scale{Factor: f.noise}, slope))
	}
	if f.dataSize == 1 {
		return u
	}
	return b.Apply(op.Scale{Factor: 1 / float64(f.dataSize)}, u)
}

func wide[T float32 | float64](values []T) []float64 {
	w := make([]float64, len(values))
	for i, v := range values {
		w[i] = float64(v)
	}
	return w
}

// TestTargets compares the fields' slopes with finite differences of the fields, and both with the graphs'.
func TestTargets(t *testing.T) {
	const d, n = 1e-5, 8
	for _, f := range []field{bowl{2, 2}, bowl{1, 1000}, valley{2, 1.2, 1}, logGamma{1.5}, bent{0.7, 0}, bent{0.7, 0.3}, wells{1.2, 0.4}, twins{1.5}} {
		theta := draws(n, 1)
		slope, ignored := make([]float64, n), make([]float64, n)
		u := f.at(theta, slope)
		for i := range theta {
			up, down := append([]float64{}, theta...), append([]float64{}, theta...)
			up[i] += d
			down[i] -= d
			if want := (f.at(up, ignored) - f.at(down, ignored)) / (2 * d); math.Abs(slope[i]-want) > 1e-5*(1+math.Abs(want)) {
				t.Errorf("%v: slope %d is %v, finite difference %v", f, i, slope[i], want)
			}
		}
		b := graph.New(tensor.Float64)
		w := b.Parameter(parameterName, func(_ uint64, _ uint32, _ uint16, _ tensor.Shape, values []float64) { copy(values, theta) }, n)
		potential := target{f, 0, 4, 0}.loss(b, w)
		b.Output("gradient", b.Gradients(potential, w)[0])
		b.Output("potential", potential)
		session := load(t, b, graph.LoadOptions{}, 1)
		advance(t, session, 1)
		for i, got := range append(values(t, session, "gradient", 0, n), values(t, session, "potential", 0, 1)...) {
			if want := append(slope, u)[i] / 4; math.Abs(got-want) > 1e-14*(1+math.Abs(want)) {
				t.Errorf("%v: value %d of the graph is %v, want %v", f, i, got, want)
			}
		}
	}
}

// draws are standard normals that depend on the stream alone.
func draws(n int, stream uint16) []float64 {
	z := make([]float64, n)
	random.Normals(z, 0, random.Address{Seed: 99, Stream: stream})
	return z
}

// experiment is a sampler on a field, of one parameter "w.weight".
type experiment struct {
	sampler           langevin.Sampler
	dtype             tensor.DType // 0 means Float32
	field             field
	noise             float64
	dimensions        int
	chains            int
	prior             langevin.Prior
	dataSize          int
	step, temperature float64
	start             graph.Initializer
}

const (
	parameterName = "w.weight"
	runSeed       = 7
)

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

// build compiles and loads the experiment with updates of the caller's. The number of the next stream after the loss's is returned:
// that of the first update.
func (e experiment) build(t testing.TB, attach func(b *graph.Builder, loss *graph.Node) error) (*graph.Session, uint16) {
	t.Helper()
	dtype := e.dtype
	if dtype == 0 {
		dtype = tensor.Float32
	}
	b := graph.New(dtype)
	w := b.Parameter(parameterName, e.start, e.dimensions)
	stream := b.Stream()
	loss := target{e.field, e.noise, e.dataSize, stream}.loss(b, w)
	if err := attach(b, loss); err != nil {
		t.Fatal(err)
	}
	if p, ok := e.sampler.(langevin.PSGLD); ok && p.Gamma == langevin.GammaHutchinson {
		stream++ // of the probe's signs
	}
	return load(t, b, graph.LoadOptions{Seed: runSeed, Chains: e.chains}, 1), stream + 1
}

// load compiles a graph and loads it on the tests' device.
func load(t testing.TB, b *graph.Builder, o graph.LoadOptions, threads int) *graph.Session {
	t.Helper()
	program, err := b.Compile()
	if err != nil {
		t.Fatal(err)
	}
	session, err := program.Load(cudatest.Device(t, threads), o)
	cudatest.SkipWithoutKernel(t, err)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// advance makes any number of steps.
func advance(t testing.TB, s *graph.Session, steps int) {
	t.Helper()
	for steps > 0 {
		n := min(steps, graph.MetricRows)
		if err := s.Run(n); err != nil {
			t.Fatal(err)
		}
		steps -= n
	}
}

// values reads a parameter or state of one chain, in the program's precision.
func values(t testing.TB, s *graph.Session, name string, chain, n int) []float64 {
	t.Helper()
	if s.Program().DType() == tensor.Float32 {
		v := make([]float32, n)
		if err := graph.Read(s, name, chain, 0, v); err != nil {
			t.Fatal(err)
		}
		return wide(v)
	}
	v := make([]float64, n)
	if err := graph.Read(s, name, chain, 0, v); err != nil {
		t.Fatal(err)
	}
	return v
}

// from starts every element at the same value.
func from(value float64) graph.Initializer {
	return func(_ uint64, _ uint32, _ uint16, _ tensor.Shape, values []float64) {
		for i := range values {
			values[i] = value
		}
	}
}

// normal starts elements at independent draws times scale(i).
func normal(scale func(i int) float64) graph.Initializer {
	return func(seed uint64, chain uint32, stream uint16, _ tensor.Shape, values []float64) {
		random.Normals(values, 0, random.Address{Seed: seed, Chain: chain, Step: 1 << 40, Stream: stream})
		for i := range values {
			values[i] *= scale(i)
		}
	}
}
