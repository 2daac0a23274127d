package cuda_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mathext"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/cudatest"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// ulpsOf returns the distance of got from want in units in the last place of T at want. If got is
// want rounded to T, it returns 0 instead of up to 1/2.
func ulpsOf[T float32 | float64](got T, want float64) float64 {
	rounded := T(want)
	if got == rounded || got != got && rounded != rounded {
		return 0
	}
	size := math.Nextafter(math.Abs(float64(rounded)), math.Inf(1)) - math.Abs(float64(rounded))
	if single, ok := any(rounded).(float32); ok {
		size = float64(math.Nextafter32(float32(math.Abs(float64(single))), float32(math.Inf(1)))) - math.Abs(float64(single))
	}
	return math.Abs(float64(got)-want) / size
}

// curves are the functions of kernels/math.cuh, with the error bounds that its comments give, in
// ulps, plus one for the error of Go's functions.
var curves = []struct {
	name   string
	op     graph.Op
	value  func(x float64) float64
	lo, hi float64
	ulps   float64
}{
	{"exp", op.Exp{}, math.Exp, -110, 89, 2},
	{"log", op.Log{}, math.Log, 0, 3, 2},
	{"log1p", op.Log1p{}, math.Log1p, -1, 3, 3},
	{"tanh", op.Tanh{}, math.Tanh, -12, 12, 4},
	{"sigmoid", op.Sigmoid{}, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, -80, 80, 3},
	{"softplus", op.Softplus{}, func(x float64) float64 { return math.Max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }, -50, 50, 4},
	{"elu", op.ELU{Alpha: 1}, func(x float64) float64 { return math.Max(x, 0) + math.Expm1(math.Min(x, 0)) }, -40, 1, 3},
	{"sqrt", op.Sqrt{}, math.Sqrt, 0, 100, 0.5},
}

// argumentsOf returns arguments that are spread over an interval, small ones, and special values.
// Float64's subnormals are not among them: Go's logarithm of these is wrong on amd64.
func argumentsOf(lo, hi float64, n int) []float64 {
	source := rand.New(rand.NewPCG(1, 2))
	x := []float64{0, math.Copysign(0, -1), 1, -1, 2, -2, 0.5, -0.5, math.Inf(1), math.Inf(-1), math.NaN(), 0x1p-149, -0x1p-149, 0x1p-1022, 3e38, -3e38}
	for len(x) < n {
		x = append(x, lo+(hi-lo)*source.Float64(), math.Ldexp(source.Float64()+0.5, source.IntN(60)-80))
	}
	return x
}

func TestCurves(t *testing.T) {
	device := cudatest.GPU(t, cuda.Options{})
	for _, c := range curves {
		x := argumentsOf(c.lo, c.hi, 20001)
		t.Run(c.name+"/float32", func(t *testing.T) { testCurve[float32](t, device, c.op, c.value, x, c.ulps) })
		t.Run(c.name+"/float64", func(t *testing.T) { testCurve[float64](t, device, c.op, c.value, x, c.ulps) })
	}
}

func testCurve[T float32 | float64](t *testing.T, device tensor.Device, o graph.Op, value func(x float64) float64, at []float64, ulps float64) {
	x := make([]T, len(at))
	for i, v := range at {
		x[i] = T(v)
	}
	for i, got := range apply(t, device, o, x) {
		if want := value(float64(x[i])); !(ulpsOf(got, want) <= ulps) {
			t.Fatalf("f(%v) is %v, want %v within %v ulps: off by %.2f", x[i], got, want, ulps, ulpsOf(got, want))
		}
	}
}

// apply returns the result of an op with the single input x on a device.
func apply[T float32 | float64](t *testing.T, device tensor.Device, o graph.Op, x []T) []T {
	t.Helper()
	dtype := tensor.DTypeOf[T]()
	b := graph.New(dtype)
	b.Output("y", b.Apply(o, b.Data("x", dtype, len(x))))
	s := load(t, b, device, 1)
	y := make([]T, len(x))
	for _, err := range []error{graph.Write(s, "x", 0, 0, x), s.Run(1), graph.Read(s, "y", 0, 0, y)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return y
}

// load compiles a graph and loads it for some chains.
func load(t *testing.T, b *graph.Builder, device tensor.Device, chains int) *graph.Session {
	t.Helper()
	program, err := b.Compile()
	if err != nil {
		t.Fatal(err)
	}
	s, err := program.Load(device, graph.LoadOptions{Seed: 0x5eed_0123_4567_89ab, Chains: chains, FirstChain: 7})
	if err != nil {
		t.Fatal(err)
	}
	rememberProgram(device, program, max(1, chains))
	t.Cleanup(func() { s.Close() })
	return s
}

// TestGammaFunctions checks the logarithm of the gamma function and its derivative by absolute
// errors. They have zeros, around which Go's functions are wrong by 5e-15.
func TestGammaFunctions(t *testing.T) {
	device := cudatest.GPU(t, cuda.Options{})
	x := argumentsOf(-6, 60, 5001)
	y := apply(t, device, op.Lgamma{}, x)
	for i, v := range x {
		want, _ := math.Lgamma(v)
		if got := y[i]; got != want && !(math.IsNaN(got) && math.IsNaN(want)) && !(math.Abs(got-want) <= 6e-15*(1+math.Abs(want)+math.Abs(v))) {
			t.Errorf("lgamma(%v) is %v, want %v", v, got, want)
		}
	}
	b := graph.New(tensor.Float64)
	in := b.Parameter("x", nil, len(x))
	dx := b.Gradients(b.Apply(op.Sum{}, b.Apply(op.Lgamma{}, in)), in)[0]
	b.Output("dx", dx)
	s := load(t, b, device, 1)
	slopes := make([]float64, len(x))
	for _, err := range []error{graph.Write(s, "x", 0, 0, x), s.Run(1), graph.Read(s, "dx", 0, 0, slopes)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, v := range x {
		want, got := mathext.Digamma(v), slopes[i]
		if got != want && !(math.IsNaN(got) && math.IsNaN(want)) && !(math.Abs(got-want) <= 1e-13*(1+math.Abs(want)*(1+math.Abs(want)))) {
			t.Errorf("digamma(%v) is %v, want %v", v, got, want)
		}
	}
}
