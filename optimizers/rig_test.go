package optimizers

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pollen-ml/pollen/cuda/cudatest"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// rig is a session of nothing but updates; the test writes the gradients.
type rig struct {
	t       testing.TB
	session *graph.Session
	builder *graph.Builder
	sizes   []int
}

type setting struct {
	optimizer Optimizer
	dtype     tensor.DType
	rates     []float64
	sizes     []int // of the parameters; the last one has a second axis
	threads   int
	options   graph.LoadOptions
}

// start builds a program with a parameter, a gradient and a kept statistic for each size.
// Parameters start as normals of (seed, chain).
func start(t testing.TB, s setting) *rig {
	t.Helper()
	b := graph.New(s.dtype)
	var parameters, gradients []*graph.Node
	for i, size := range s.sizes {
		shape := []int{size}
		if i == len(s.sizes)-1 {
			shape = []int{1, size}
		}
		parameters = append(parameters, b.Parameter(parameterName(i), normals, shape...))
		gradients = append(gradients, b.Data(gradientName(i), s.dtype, shape...))
	}
	var rates *graph.Node
	if UsesRates(s.optimizer) {
		rates = b.Table("rates", s.rates)
	}
	for i, statistic := range Update(b, s.optimizer, parameters, gradients, rates) {
		b.Output(statisticName(i), statistic)
	}
	program, err := b.Compile()
	if err != nil {
		t.Fatal(err)
	}
	session, err := program.Load(cudatest.Device(t, max(1, s.threads)), s.options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return &rig{t: t, session: session, builder: b, sizes: s.sizes}
}

func parameterName(i int) string { return fmt.Sprintf("layer%d.weight", i) }
func gradientName(i int) string  { return fmt.Sprintf("layer%d.gradient", i) }
func statisticName(i int) string { return fmt.Sprintf("layer%d.statistic", i) }

func normals(seed uint64, chain uint32, stream uint16, _ tensor.Shape, values []float64) {
	fill(values, seed*1000+uint64(chain)*100+uint64(stream))
}

// fill makes values normals that float32 holds exactly.
func fill(values []float64, seed uint64) {
	source := rand.New(rand.NewPCG(seed, 1))
	for i := range values {
		values[i] = float64(float32(source.NormFloat64()))
	}
}

// gradientsOf are the gradients of one step: of many magnitudes, and 0 for some parameters at every
// step.
func gradientsOf(step, parameter, size int) []float64 {
	g := make([]float64, size)
	fill(g, uint64(1e6+1000*step+parameter))
	for i := range g {
		g[i] *= []float64{0, 1, 1e-2, 8, 1}[i%5]
		g[i] = float64(float32(g[i]))
	}
	return g
}

// write sets an input, read gets an input or output.
func (r *rig) write(name string, chain int, values []float64) {
	r.t.Helper()
	err := graph.Write(r.session, name, chain, 0, values)
	if r.session.Program().DType() == tensor.Float32 {
		err = graph.Write(r.session, name, chain, 0, narrow(values))
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) read(name string, chain, size int) []float64 {
	r.t.Helper()
	values := make([]float64, size)
	if r.session.Program().DType() == tensor.Float64 {
		if err := graph.Read(r.session, name, chain, 0, values); err != nil {
			r.t.Fatal(err)
		}
		return values
	}
	short := make([]float32, size)
	if err := graph.Read(r.session, name, chain, 0, short); err != nil {
		r.t.Fatal(err)
	}
	for i, v := range short {
		values[i] = float64(v)
	}
	return values
}

// step runs one step with the gradients of gradientsOf.
func (r *rig) step(number int) {
	r.t.Helper()
	for i, size := range r.sizes {
		r.write(gradientName(i), 0, gradientsOf(number, i, size))
	}
	r.run(1)
}

func (r *rig) run(steps int) {
	r.t.Helper()
	if err := r.session.Run(steps); err != nil {
		r.t.Fatal(err)
	}
}

// parameters are all parameters of a chain, one after the other.
func (r *rig) parameters(chain int) []float64 {
	r.t.Helper()
	var all []float64
	for i, size := range r.sizes {
		all = append(all, r.read(parameterName(i), chain, size)...)
	}
	return all
}

func narrow(values []float64) []float32 {
	short := make([]float32, len(values))
	for i, v := range values {
		short[i] = float32(v)
	}
	return short
}

// wantClose fails on the element with the largest error; NaN always counts as an error.
func wantClose(t testing.TB, what string, got, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: got %d elements, want %d", what, len(got), len(want))
	}
	worst, at := 0.0, -1
	for i := range want {
		off := math.Abs(got[i]-want[i]) / (1 + math.Abs(want[i]))
		if !(off <= tolerance) && !(off <= worst) {
			worst, at = off, i
		}
	}
	if at >= 0 {
		t.Fatalf("%s: element %d is %v, want %v within %v", what, at, got[at], want[at], tolerance)
	}
}

func wantEqual(t testing.TB, what string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: got %d elements, want %d", what, len(got), len(want))
	}
	for i := range want {
		if math.Float64bits(got[i]) != math.Float64bits(want[i]) {
			t.Fatalf("%s: element %d is %v, want %v exactly", what, i, got[i], want[i])
		}
	}
}

// customary are all rules, with customary hyperparameters.
var customary = []Optimizer{
	SGD{}, Momentum{0.9, 0}, Nesterov{0.9, 0}, Adagrad{1e-8, 0}, Adadelta{0.95, 1e-6, 0}, RMSProp{0.9, 1e-8, 0}, Adam{0.9, 0.999, 1e-8, 0},
	AdamW{0.9, 0.999, 1e-8, 0.01},
}
