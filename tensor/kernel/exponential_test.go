package kernel

import (
	"math"
	"testing"
)

// curves are HardSwish and the functions of exponentials and logarithms. Each has its formula and
// the maximum of its error, in units of 2^-24 of the result or, near a zero that is not at 0, of 1.
// dout is 1.5, alpha 0.75.
var curves = []struct {
	name     string
	run      func(y, x []float32)
	formula  func(x float64) float64
	units    float64
	absolute bool
}{
	{"expm1", Expm1, math.Expm1, 4, false},
	{"sigmoid", Sigmoid, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, 4, false},
	{"silu", SiLU, func(x float64) float64 { return x / (1 + math.Exp(-x)) }, 5, false},
	{"tanh", Tanh, math.Tanh, 6, false},
	{"erf", Erf, math.Erf, 7, false},
	{"gelu", GELU, func(x float64) float64 { return x * math.Erfc(-x/math.Sqrt2) / 2 }, 16, true},
	{"gelu gradient", ofGradient(GELUGradient), func(x float64) float64 {
		return 1.5 * (math.Erfc(-x/math.Sqrt2)/2 + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi))
	}, 16, true},
	{"elu", func(y, x []float32) { ELU(y, x, 0.75) }, func(x float64) float64 { return max(x, 0) + 0.75*math.Expm1(min(x, 0)) }, 5, false},
	{"silu gradient", ofGradient(SiLUGradient), func(x float64) float64 {
		s := 1 / (1 + math.Exp(-x))
		return 1.5 * s * (1 + x*(1-s))
	}, 8, true},
	{"softplus", Softplus, func(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }, 6, false},
	{"softplus gradient", ofGradient(SoftplusGradient), func(y float64) float64 { return -1.5 * math.Expm1(-y) }, 5, false},
	{"log", Log, math.Log, 3, false},
	{"hard swish", HardSwish, func(x float64) float64 { return x * min(max(x/6+0.5, 0), 1) }, 8, true},
	{"hard swish gradient", ofGradient(HardSwishGradient), func(x float64) float64 {
		if math.Abs(x) < 3 {
			return 1.5 * (x/3 + 0.5)
		}
		return 1.5 * min(max(x, 0), 1)
	}, 4, true},
	{"sigmoid gradient", ofGradient(SigmoidGradient), func(y float64) float64 { return 1.5 * y * (1 - y) }, 4, false},
	{"tanh gradient", ofGradient(TanhGradient), func(y float64) float64 { return 1.5 * (1 - y) * (1 + y) }, 4, false},
}

func ofGradient(f func(dx, dout, v []float32)) func(y, x []float32) {
	return func(y, x []float32) {
		dout := make([]float32, len(x))
		for i := range dout {
			dout[i] = 1.5
		}
		f(y, dout, x)
	}
}

func TestExponentials(t *testing.T) {
	var x []float32
	for i := range 100_001 {
		x = append(x, float32(i-50_000)*0x1p-10*0.91)
	}
	for v := float32(1); v > 1e-37; v *= 0.93 {
		x = append(x, v, -v)
	}
	inf := float32(math.Inf(1))
	x = append(x, 0, float32(math.Copysign(0, -1)), inf, -inf, float32(math.NaN()), 88.5, 88.73, 1e30, -1e30, -79.9, -81, -100)
	// A product of e^x is inexact there, and one rounding instead of two would change softplus.
	x = append(x, -79.01915, -79.71164)
	most, portable := isa, map[string][]float32{}
	set(portableGo)
	for _, c := range curves {
		portable[c.name] = make([]float32, len(x))
		c.run(portable[c.name], x)
	}
	set(most)
	onEachInstructionSet(t, func(t *testing.T) {
		for _, c := range curves {
			y := make([]float32, len(x))
			c.run(y, x)
			worst, at := 0.0, float32(0)
			for i, v := range x {
				if !sameBits(y[i], portable[c.name][i]) {
					t.Fatalf("%s of %v is %v, in portable Go %v", c.name, v, y[i], portable[c.name][i])
				}
				want := c.formula(float64(v))
				if float32(want) == y[i] || math.IsInf(float64(v), 0) || math.Abs(float64(v)) > 79 {
					continue // see TestExponentialsFarOut
				}
				if want != want {
					if y[i] == y[i] {
						t.Errorf("%s of %v is %v, want NaN", c.name, v, y[i])
					}
					continue
				}
				e := math.Abs(float64(y[i])-want) * 0x1p24
				if !c.absolute {
					e /= math.Abs(want)
				}
				if !(e <= worst) {
					worst, at = e, v
				}
			}
			if !(worst <= c.units) {
				t.Errorf("%s: the error at %v is %v units of 2^-24, want at most %v", c.name, at, worst, c.units)
			}
			t.Logf("%s: largest error %.2f units of 2^-24, at %v", c.name, worst, at)
		}
	})
}

func TestExponentialsFarOut(t *testing.T) {
	inf := float32(math.Inf(1))
	onEachInstructionSet(t, func(t *testing.T) {
		for _, c := range []struct {
			name    string
			run     func(y, x []float32)
			x, want float32
		}{
			{"expm1", Expm1, inf, inf}, {"expm1", Expm1, -inf, -1}, {"expm1", Expm1, 88.5, 2.7230878e38}, {"expm1", Expm1, 88.73, inf},
			{"expm1", Expm1, 1e30, inf}, {"expm1", Expm1, -1e30, -1}, {"sigmoid", Sigmoid, inf, 1}, {"sigmoid", Sigmoid, -inf, 0},
			{"sigmoid", Sigmoid, 100, 1}, {"sigmoid", Sigmoid, -100, 0}, {"silu", SiLU, 1e30, 1e30}, {"silu", SiLU, -100, 0},
			{"silu gradient", ofGradient(SiLUGradient), 1e30, 1.5}, {"silu gradient", ofGradient(SiLUGradient), -100, 0},
			{"silu gradient", ofGradient(SiLUGradient), -inf, 0}, {"softplus", Softplus, inf, inf}, {"softplus", Softplus, -inf, 0},
			{"softplus", Softplus, 1e30, 1e30}, {"softplus gradient", ofGradient(SoftplusGradient), inf, 1.5},
			{"hard swish", HardSwish, 1e30, 1e30}, {"hard swish", HardSwish, -1e30, 0}, {"hard swish gradient", ofGradient(HardSwishGradient), inf, 1.5},
			{"hard swish gradient", ofGradient(HardSwishGradient), -3, 0}, {"hard swish gradient", ofGradient(HardSwishGradient), 3, 1.5},
			{"tanh", Tanh, inf, 1}, {"tanh", Tanh, -inf, -1}, {"tanh", Tanh, -100, -1}, {"tanh", Tanh, 100, 1},
		} {
			for _, n := range []int{1, passLanes} {
				x, y := make([]float32, n), make([]float32, n)
				x[n-1] = c.x
				if c.run(y, x); !(y[n-1] == c.want || math.Abs(float64(y[n-1]-c.want)) <= 1e-4*math.Abs(float64(c.want))+1e-30) {
					t.Errorf("%s of %v is %v, want %v", c.name, c.x, y[n-1], c.want)
				}
			}
		}
	})
}

// Every length and alignment gives the same bits, also if y is x, and nothing beyond the end is
// written.
func TestExponentialsPlaces(t *testing.T) {
	onEachInstructionSet(t, func(t *testing.T) {
		for _, c := range curves {
			var x, want [70]float32
			for i := range x {
				x[i] = float32(i%33)/4 - 4.1
			}
			c.run(want[:], x[:])
			for n := range 35 {
				for from := range 9 {
					all, y := guarded[float32](n)
					copy(y, x[from:])
					c.run(y, y)
					if !intact(all) {
						t.Fatalf("%s of %d elements: written out of bounds", c.name, n)
					}
					for i := range y {
						if !sameBits(y[i], want[from+i]) {
							t.Fatalf("%s of %d elements from %d: element %d is %v, want %v", c.name, n, from, i, y[i], want[from+i])
						}
					}
				}
			}
		}
	})
}

func BenchmarkExponentials(b *testing.B) {
	x, y := make([]float32, 8192), make([]float32, 8192)
	for i := range x {
		x[i] = float32(i%97)/12 - 4
	}
	for _, c := range curves {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				c.run(y, x)
			}
			b.ReportMetric(float64(len(x))*float64(b.N)/b.Elapsed().Seconds()/1e9, "elements/ns")
		})
	}
}
