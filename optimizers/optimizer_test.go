package optimizers

import (
	"math"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// element is one parameter of the naive computation.
type element struct{ theta, first, second float64 }

// rules are the formulas, transcribed for one parameter: step t = 1, 2, ... returns the gradient
// that enters the statistic.
var rules = []struct {
	optimizer Optimizer
	step      func(e *element, gradient, rate, t float64) float64
}{
	{SGD{WeightDecay: 0.03}, func(e *element, g, rate, _ float64) float64 {
		g += 0.03 * e.theta
		e.theta -= rate * g
		return g
	}},
	{Momentum{Decay: 0.8, WeightDecay: 0.03}, func(e *element, g, rate, _ float64) float64 {
		g += 0.03 * e.theta
		e.first = 0.8*e.first + rate*g
		e.theta -= e.first
		return g
	}},
	// The velocity form at the look-ahead point theta: theta' = theta + 0.8*old velocity is where
	// the iterate itself is.
	{Nesterov{Decay: 0.8, WeightDecay: 0.03}, func(e *element, g, rate, _ float64) float64 {
		g += 0.03 * e.theta
		iterate := e.theta + 0.8*e.first
		e.first = 0.8*e.first + rate*g
		iterate -= e.first
		e.theta = iterate - 0.8*e.first
		return g
	}},
	{Adagrad{Epsilon: 1e-3, WeightDecay: 0.03}, func(e *element, g, rate, _ float64) float64 {
		g += 0.03 * e.theta
		e.first += g * g
		e.theta -= rate * g / (math.Sqrt(e.first) + 1e-3)
		return g
	}},
	{Adadelta{Decay: 0.7, Epsilon: 1e-4, WeightDecay: 0.03}, func(e *element, g, _, _ float64) float64 {
		g += 0.03 * e.theta
		e.first = 0.7*e.first + 0.3*g*g
		d := math.Sqrt(e.second+1e-4) / math.Sqrt(e.first+1e-4) * g
		e.second = 0.7*e.second + 0.3*d*d
		e.theta -= d
		return g
	}},
	{RMSProp{Decay: 0.7, Epsilon: 1e-3, WeightDecay: 0.03}, func(e *element, g, rate, _ float64) float64 {
		g += 0.03 * e.theta
		e.first = 0.7*e.first + 0.3*g*g
		e.theta -= rate * g / (math.Sqrt(e.first) + 1e-3)
		return g
	}},
	{Adam{Beta1: 0.8, Beta2: 0.99, Epsilon: 1e-3, WeightDecay: 0.03}, func(e *element, g, rate, t float64) float64 {
		g += 0.03 * e.theta
		e.first = 0.8*e.first + 0.2*g
		e.second = 0.99*e.second + 0.01*g*g
		mean, square := e.first/(1-math.Pow(0.8, t)), e.second/(1-math.Pow(0.99, t))
		e.theta -= rate * mean / (math.Sqrt(square) + 1e-3)
		return g
	}},
	{AdamW{Beta1: 0.8, Beta2: 0.99, Epsilon: 1e-3, WeightDecay: 0.4}, func(e *element, g, rate, t float64) float64 {
		e.first = 0.8*e.first + 0.2*g
		e.second = 0.99*e.second + 0.01*g*g
		mean, square := e.first/(1-math.Pow(0.8, t)), e.second/(1-math.Pow(0.99, t))
		e.theta -= rate * (mean/(math.Sqrt(square)+1e-3) + 0.4*e.theta)
		return g
	}},
}

// many has one tile, one tile that is not full, two tiles.
var many = []int{1, 257, 5000}

func TestUpdatesFollowTheirFormulas(t *testing.T) {
	const steps = 20
	rates, err := Polynomial{0.1, 0.01, 0.55}.Rates(steps)
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range rules {
		for dtype, tolerance := range map[tensor.DType]float64{tensor.Float64: 1e-14, tensor.Float32: 4e-6} {
			t.Run(rule.optimizer.Name()+"/"+dtype.String(), func(t *testing.T) {
				r := start(t, setting{optimizer: rule.optimizer, dtype: dtype, rates: rates, sizes: many})
				elements := make([][]element, len(many))
				for i, size := range many {
					for _, theta := range r.read(parameterName(i), 0, size) {
						elements[i] = append(elements[i], element{theta: theta})
					}
				}
				for number := range steps {
					r.step(number)
					for i, size := range many {
						theta, statistics := make([]float64, size), make([]float64, op.UpdateTiles(size))
						for j, gradient := range gradientsOf(number, i, size) {
							before := elements[i][j].theta
							g := rule.step(&elements[i][j], gradient, rates[number], float64(number+1))
							statistics[j/op.UpdateTile(size)] += before * g
							theta[j] = elements[i][j].theta
						}
						wantClose(t, "theta", r.read(parameterName(i), 0, size), theta, tolerance)
						wantClose(t, "statistic", r.read(statisticName(i), 0, len(statistics)), statistics, 100*tolerance)
					}
				}
			})
		}
	}
}

// Gradient descent is the same expression here and at temperature 0.
func TestSGDBits(t *testing.T) {
	for _, decay := range []float64{0, 0.37} {
		r := start(t, setting{optimizer: SGD{decay}, dtype: tensor.Float32, rates: []float64{0.1}, sizes: []int{5000}})
		theta, gradient := r.parameters(0), gradientsOf(0, 0, 5000)
		want := make([]float64, len(theta))
		for i := range want {
			w, g := float32(theta[i]), float32(gradient[i])
			if decay != 0 {
				scaled := float32(decay) * w
				g += scaled
			}
			move := float32(0.1) * g
			want[i] = float64(w - move)
		}
		r.step(0)
		wantEqual(t, "theta", r.parameters(0), want)
	}
}

// A chain's bits depend neither on threads, nor on the other chains, nor on an interruption; the
// program and the interpreter give the same bits.
func TestBitsDoNotDependOnTheRun(t *testing.T) {
	const steps = 4
	for _, rule := range rules {
		t.Run(rule.optimizer.Name(), func(t *testing.T) {
			base := setting{
				optimizer: rule.optimizer, dtype: tensor.Float32, rates: []float64{0.1, 0.2, 0.05}, sizes: many, threads: 1,
				options: graph.LoadOptions{Seed: 7, FirstChain: 1},
			}
			alone, among := base, base
			among.threads, among.options.FirstChain, among.options.Chains = 2, 0, 3
			twice := base
			twice.threads = 2
			first, second, third := start(t, alone), start(t, twice), start(t, among)
			for number := range steps {
				first.step(number)
				second.step(number)
				third.step(number)
			}
			want := first.parameters(0)
			wantEqual(t, "2 threads", second.parameters(0), want)
			wantEqual(t, "chain 1 of 3", third.parameters(1), want)

			state := make([]byte, first.session.ChainBytes())
			if err := first.session.Save(0, state); err != nil {
				t.Fatal(err)
			}
			first.step(steps)
			again := start(t, alone)
			if err := again.session.Restore(0, state, steps); err != nil {
				t.Fatal(err)
			}
			again.step(steps)
			wantEqual(t, "resumed", again.parameters(0), first.parameters(0))

			interpretAlso(t, second.builder, base.options, steps, want)
		})
	}
}

// interpretAlso runs the same steps node by node.
func interpretAlso(t *testing.T, b *graph.Builder, o graph.LoadOptions, steps int, want []float64) {
	t.Helper()
	interpreter, err := graph.Interpret(b, o)
	if err != nil {
		t.Fatal(err)
	}
	memory := func(name string) []float32 {
		d, err := interpreter.Input(name)
		if err != nil {
			t.Fatal(err)
		}
		return d.Data().([]float32)
	}
	for number := range steps {
		for i, size := range many {
			copy(memory(gradientName(i)), narrow(gradientsOf(number, i, size)))
		}
		if err := interpreter.Step(); err != nil {
			t.Fatal(err)
		}
	}
	var got []float64
	for i := range many {
		for _, v := range memory(parameterName(i)) {
			got = append(got, float64(v))
		}
	}
	wantEqual(t, "interpreter", got, want)
}

// Without gradient and weight decay nothing moves and nothing is divided by 0.
func TestZeroGradients(t *testing.T) {
	for _, o := range customary {
		if _, ok := o.(AdamW); ok {
			o = AdamW{0.9, 0.999, minNormal, 0}
		}
		for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float64} {
			r := start(t, setting{optimizer: o, dtype: dtype, rates: []float64{0.5}, sizes: many})
			want := r.parameters(0)
			r.run(5)
			wantEqual(t, o.Name(), r.parameters(0), want)
		}
	}
}

// The first step of Adam is as long as the rate, whatever the betas and the size of the gradient.
func TestBiasCorrectionAtTheFirstStep(t *testing.T) {
	for _, o := range []Optimizer{
		Adam{0.9, 0.999, 1e-30, 0}, Adam{0, 0, 1e-30, 0}, Adam{0.999999, 0.5, 1e-30, 0}, AdamW{0.5, 0.999999, 1e-30, 0},
	} {
		for dtype, tolerance := range map[tensor.DType]float64{tensor.Float64: 1e-14, tensor.Float32: 3e-7} {
			r := start(t, setting{optimizer: o, dtype: dtype, rates: []float64{0.25}, sizes: []int{4}})
			r.write(parameterName(0), 0, make([]float64, 4))
			r.write(gradientName(0), 0, []float64{3, -0.5, 1e-6, -1e6})
			r.run(1)
			wantClose(t, o.Name(), r.parameters(0), []float64{-0.25, 0.25, -0.25, 0.25}, tolerance)
		}
	}
}

// Rules that are one another's special cases.
func TestSpecialCases(t *testing.T) {
	for _, pair := range [][2]Optimizer{
		{Momentum{0, 0.1}, SGD{0.1}},
		{Nesterov{0, 0.1}, SGD{0.1}},
		{AdamW{0.9, 0.99, 1e-8, 0}, Adam{0.9, 0.99, 1e-8, 0}},
	} {
		var got [2][]float64
		for i, o := range pair {
			r := start(t, setting{optimizer: o, dtype: tensor.Float32, rates: []float64{0.1}, sizes: many})
			for number := range 3 {
				r.step(number)
			}
			got[i] = r.parameters(0)
		}
		wantEqual(t, pair[0].Name()+" as "+pair[1].Name(), got[0], got[1])
	}
}

func TestStepsDoNotAllocate(t *testing.T) {
	for _, rule := range rules {
		r := start(t, setting{optimizer: rule.optimizer, dtype: tensor.Float32, rates: []float64{1e-3}, sizes: many, threads: 2})
		if n := testing.AllocsPerRun(10, func() { r.run(1) }); n > 0 {
			t.Errorf("%s: %v allocations in a step", rule.optimizer.Name(), n)
		}
	}
}
