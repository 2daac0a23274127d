package op

import (
	"math"
	"slices"
	"testing"

	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

func TestDensityOpsRefuse(t *testing.T) {
	scalar, vector, matrix := tensor.Shape{}, tensor.Shape{3}, tensor.Shape{3, 4}
	refuse(t, Log1p{}, vector, vector)
	refuse(t, Abs{})
	refuse(t, SoftplusInverse{})
	refuse(t, StudentTConstant{}, vector, vector)
	refuse(t, Restrict{}, vector)
	refuse(t, Restrict{Low: 1, High: math.NaN()}, vector)
	refuse(t, Restrict{High: 1}, vector, vector)
	refuse(t, LogAddExp{}, vector)
	refuse(t, LogAddExp{}, matrix, vector)
	refuse(t, LogProbability{}, matrix)
	refuse(t, LogProbability{}, scalar, vector)
	refuse(t, LogProbability{}, matrix, tensor.Shape{4})
	refuse(t, LogProbability{}, vector, matrix)
	refuse(t, logProbabilityBackward{}, matrix, vector, tensor.Shape{4})
	refuse(t, Noise{}, vector)
	refuse(t, Noise{Stream: random.OrderStream}, vector)
	refuse(t, Noise{Stream: 1, Kind: UniformNoise + 1}, vector)
	refuse(t, Noise{Stream: 1})
}

// Where the plain formula overflows, cancels or divides by zero.
func TestDensityCurvesFarOut(t *testing.T) {
	for _, c := range []struct {
		op       unaryOp
		x        float64
		y, slope float64
	}{
		{Log1p{}, 1e-300, 1e-300, 1},
		{Log1p{}, 1e300, 300 * math.Ln10, 1e-300},
		{Abs{}, 0, 0, 0},
		{Abs{}, -1e300, 1e300, -1},
		{SoftplusInverse{}, 1e-300, -300 * math.Ln10, 1e300},
		{SoftplusInverse{}, 800, 800, 1},
		{SoftplusInverse{}, math.Exp(-40), -40, math.Exp(40)},
		{StudentTConstant{}, 1, -math.Log(math.Pi), math.Ln2 - 0.5},
		{StudentTConstant{}, 1e-8, math.Log(0.5e-8) - 0.5*math.Log(1e-8), 0.5e8},
		{StudentTConstant{}, 1e300, -0.5 * math.Log(2*math.Pi), 0},
		{StudentTConstant{}, 1e6, -0.5*math.Log(2*math.Pi) - 0.25e-6, 0.25e-12},
	} {
		f := c.op.unary()
		y := f.value(c.x)
		v := c.x
		if f.fromOutput {
			v = y
		}
		for what, pair := range map[string][2]float64{"y": {y, c.y}, "slope": {f.derivative(v), c.slope}} {
			if got, want := pair[0], pair[1]; !(math.Abs(got-want) <= 1e-7*math.Abs(want)) {
				t.Errorf("%s of %v: %s is %v, want %v", c.op.Name(), c.x, what, got, want)
			}
		}
	}
}

// The series and the exact formula agree where one takes over from the other.
func TestStudentTConstantIsContinuous(t *testing.T) {
	f := StudentTConstant{}.unary()
	below, above := math.Nextafter(asymptoticFrom, 0), float64(asymptoticFrom)
	if a, b := f.value(below), f.value(above); math.Abs(a-b) > 1e-13 {
		t.Errorf("constant is %v just below %v degrees of freedom, and %v there", a, asymptoticFrom, b)
	}
	if a, b := f.derivative(below), f.derivative(above); math.Abs(a-b) > 1e-11*b {
		t.Errorf("slope is %v just below %v degrees of freedom, and %v there", a, asymptoticFrom, b)
	}
}

func TestLogAddExpOfInfinities(t *testing.T) {
	inf := math.Inf(1)
	a := []float64{-inf, -inf, inf, inf, 0, 1000, -1000}
	b := []float64{-inf, 3, inf, 3, 0, -1000, -1000}
	want := []float64{-inf, 3, inf, inf, math.Ln2, 1000, -1000 + math.Ln2}
	got := make([]float64, len(a))
	logAddExp(got, a, b)
	same(t, "ln(e^a + e^b)", got, want, 1e-15)
	logAddExp(got, b, a)
	same(t, "ln(e^b + e^a)", got, want, 1e-15)
}

func TestWholeGivesNaN(t *testing.T) {
	f := Whole{}.unary().value
	for _, x := range []float64{0, -3, 1e15, 1 << 60, math.Inf(1)} {
		if y := f(x); y != x {
			t.Errorf("whole(%v) = %v", x, y)
		}
	}
	for _, x := range []float64{0.5, -1e-300, 2.9999999, math.NaN()} {
		if y := f(x); !math.IsNaN(y) {
			t.Errorf("whole(%v) = %v, want NaN", x, y)
		}
	}
}

func TestRestrictGivesNaN(t *testing.T) {
	f := Restrict{Low: -1, High: 2}.unary().value
	for _, x := range []float64{-1, 0, 2} {
		if f(x) != x {
			t.Errorf("%v becomes %v, want it unchanged", x, f(x))
		}
	}
	for _, x := range []float64{-1.001, 2.001, math.Inf(1), math.NaN()} {
		if !math.IsNaN(f(x)) {
			t.Errorf("%v becomes %v, want NaN", x, f(x))
		}
	}
}

// TestRestrictInFloat32: the ends of a range are in it, although they are rounded.
func TestRestrictInFloat32(t *testing.T) {
	ends := []float32{0.1, 0.7} // above 0.1, below 0.7
	y := make([]float32, 2)
	for _, r := range []Restrict{{Low: 0.1, High: 0.7}, {Low: -0.7, High: -0.1}} {
		x := []float32{float32(r.Low), float32(r.High)}
		r.unary().values(y, x)
		if !slices.Equal(x, y) {
			t.Errorf("%v: %v becomes %v, want it unchanged", r, x, y)
		}
	}
	Restrict{Low: 0.2, High: 0.6}.unary().values(y, ends)
	if y[0] == y[0] || y[1] == y[1] {
		t.Errorf("%v becomes %v, want NaN", ends, y)
	}
}
