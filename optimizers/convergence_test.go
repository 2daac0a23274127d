package optimizers

import (
	"math"
	"testing"

	"github.com/pollen-ml/pollen/tensor"
)

// landscape is a function of two parameters with one minimum.
type landscape struct {
	name           string
	start, minimum [2]float64
	gradient       func(x, y float64) (float64, float64)
}

var (
	parabola = landscape{"parabola", [2]float64{-2, 3}, [2]float64{1, -1}, func(x, y float64) (float64, float64) {
		return x - 1, y + 1
	}}
	// The curvatures of the ravine are 0.02 and 2 along axes turned by 0.5.
	ravine = landscape{"ravine", [2]float64{-5, -2}, [2]float64{0, 0}, func(x, y float64) (float64, float64) {
		c, s := math.Cos(0.5), math.Sin(0.5)
		along, across := 0.02*(c*x+s*y), 2*(c*y-s*x)
		return c*along - s*across, s*along + c*across
	}}
	rosenbrock = landscape{"rosenbrock", [2]float64{-1.2, 1}, [2]float64{1, 1}, func(x, y float64) (float64, float64) {
		return -2*(1-x) - 400*x*(y-x*x), 200 * (y - x*x)
	}}
)

// Rates fall to 0 along a cosine: rules that divide by the gradient's size do not come to rest
// otherwise. Adadelta, which has no rate, circles Rosenbrock's minimum in its curved valley.
func TestConvergence(t *testing.T) {
	for _, c := range []struct {
		optimizer                    Optimizer
		parabola, ravine, rosenbrock float64 // the first rate
	}{
		{SGD{}, 0.5, 0.5, 1e-3},
		{Momentum{0.9, 0}, 0.1, 0.1, 5e-4},
		{Nesterov{0.9, 0}, 0.1, 0.1, 5e-4},
		{Adagrad{1e-8, 0}, 1, 1, 0.5},
		{Adadelta{0.95, 1e-6, 0}, 0, 0, 0},
		{RMSProp{0.9, 1e-8, 0}, 0.02, 0.02, 0.01},
		{Adam{0.9, 0.999, 1e-8, 0}, 0.05, 0.05, 0.02},
		{AdamW{0.9, 0.999, 1e-8, 0}, 0.05, 0.05, 0.02},
	} {
		for _, run := range []struct {
			landscape landscape
			rate      float64
			steps     int
		}{{parabola, c.parabola, 2000}, {ravine, c.ravine, 4000}, {rosenbrock, c.rosenbrock, 40000}} {
			name := c.optimizer.Name() + "/" + run.landscape.name
			t.Run(name, func(t *testing.T) {
				optimizer, within := c.optimizer, 0.01
				if name == "adadelta/rosenbrock" {
					optimizer, within = Adadelta{0.9, 1e-8, 0}, 0.2
				}
				got := descend(t, optimizer, run.landscape, run.rate, run.steps)
				if distance := math.Hypot(got[0]-run.landscape.minimum[0], got[1]-run.landscape.minimum[1]); !(distance < within) {
					t.Errorf("ends at %v, %v from the minimum", got, distance)
				}
			})
		}
	}
}

func descend(t *testing.T, o Optimizer, l landscape, rate float64, steps int) []float64 {
	rates, err := Cosine{rate, 0}.Rates(steps)
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, setting{optimizer: o, dtype: tensor.Float64, rates: rates, sizes: []int{2}})
	at := l.start[:]
	r.write(parameterName(0), 0, at)
	for range steps {
		dx, dy := l.gradient(at[0], at[1])
		r.write(gradientName(0), 0, []float64{dx, dy})
		r.run(1)
		at = r.parameters(0)
	}
	return at
}

// With each at its best rate, Momentum crosses the ravine's floor in fewer steps than gradient
// descent: its error shrinks by (sqrt(k)-1)/(sqrt(k)+1) a step, not by (k-1)/(k+1), k = 100 being
// the ratio of curvatures (Polyak 1964).
func TestMomentumIsFasterInARavine(t *testing.T) {
	constant := func(o Optimizer, rate float64) float64 {
		r := start(t, setting{optimizer: o, dtype: tensor.Float64, rates: []float64{rate}, sizes: []int{2}})
		at := ravine.start[:]
		r.write(parameterName(0), 0, at)
		for range 150 {
			dx, dy := ravine.gradient(at[0], at[1])
			r.write(gradientName(0), 0, []float64{dx, dy})
			r.run(1)
			at = r.parameters(0)
		}
		return math.Hypot(at[0], at[1])
	}
	slow, fast := math.Sqrt(0.02), math.Sqrt(2)
	plain := constant(SGD{}, 2/(0.02+2))
	heavy := constant(Momentum{Decay: math.Pow((fast-slow)/(fast+slow), 2)}, 4/math.Pow(fast+slow, 2))
	if want := math.Hypot(-5, -2) * math.Pow(99.0/101, 150); math.Abs(plain-want) > 0.01*want {
		t.Errorf("gradient descent ends %v from the minimum, want %v", plain, want)
	}
	if !(heavy < 1e-8) {
		t.Errorf("momentum ends %v from the minimum, gradient descent %v", heavy, plain)
	}
}
