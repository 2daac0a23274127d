package langevin_test

import (
	"math"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// perceptron is a small smooth network: the mean over examples of |W2 tanh(W1 x) - y|^2.
type perceptron struct{ examples, inputs, hidden, outputs int }

func (p perceptron) sizes() [2]int    { return [2]int{p.hidden * p.inputs, p.outputs * p.hidden} }
func (p perceptron) names() [2]string { return [2]string{"first.weight", "second.weight"} }
func (p perceptron) x() []float64     { return trial.NormalDraws(p.examples*p.inputs, 41) }
func (p perceptron) y() []float64     { return trial.NormalDraws(p.examples*p.outputs, 42) }

func (p perceptron) build(b *graph.Builder) (loss *graph.Node) {
	start := trial.Normal(func(int) float64 { return 0.7 })
	x := b.Table("x", p.x(), p.examples, p.inputs)
	y := b.Table("y", p.y(), p.examples, p.outputs)
	linear := op.MatMul{TransposeB: true}
	h := b.Apply(op.Tanh{}, b.Apply(linear, x, b.Parameter(p.names()[0], start, p.hidden, p.inputs)))
	h = b.Apply(op.Subtract{}, b.Apply(linear, h, b.Parameter(p.names()[1], start, p.outputs, p.hidden)), y)
	return b.Apply(op.Scale{Factor: 1 / float64(p.examples)}, b.Apply(op.Sum{}, b.Apply(op.Squared{}, h)))
}

// loss is the same in float64, for both weights one after the other.
func (p perceptron) loss(w []float64) float64 {
	x, y, total := p.x(), p.y(), 0.0
	for b := range p.examples {
		for k := range p.outputs {
			out := -y[b*p.outputs+k]
			for j := range p.hidden {
				h := 0.0
				for i := range p.inputs {
					h += w[j*p.inputs+i] * x[b*p.inputs+i]
				}
				out += w[p.sizes()[0]+k*p.hidden+j] * math.Tanh(h)
			}
			total += out * out / float64(p.examples)
		}
	}
	return total
}

// derivatives are the gradient and the diagonal of the Hessian by finite differences.
func (p perceptron) derivatives(w []float64) (gradient, diagonal []float64) {
	const d = 1e-3
	at := func(i int, by float64) float64 {
		moved := append([]float64{}, w...)
		moved[i] += by
		return p.loss(moved)
	}
	for i := range w {
		up, down := at(i, d), at(i, -d)
		gradient = append(gradient, (up-down)/(2*d))
		diagonal = append(diagonal, (up+down-2*p.loss(w))/(d*d))
	}
	return gradient, diagonal
}

// TestCurvature compares the Hessian's diagonal with finite differences of the loss in float64.
// Without a step size theta stays, and with Alpha 0 the sampler's state is 2 g H.
func TestCurvature(t *testing.T) {
	p := perceptron{examples: 17, inputs: 3, hidden: 5, outputs: 3}
	for _, c := range []struct {
		gamma     langevin.Gamma
		dtype     tensor.DType
		steps     int
		tolerance float64
	}{
		{langevin.GammaExact, tensor.Float64, 1, 1e-5}, // the oracle's own error
		{langevin.GammaExact, tensor.Float32, 1, 1e-3},
		{langevin.GammaHutchinson, tensor.Float64, 2000, 0},
		{langevin.GammaHutchinson, tensor.Float32, 2000, 0},
	} {
		b := graph.New(c.dtype)
		sampler := langevin.PSGLD{Lambda: 1, Gamma: c.gamma}
		if err := langevin.Attach(b, sampler, langevin.Posterior{DataSize: p.examples}, p.build(b), []float64{0}, []float64{1}); err != nil {
			t.Fatal(err)
		}
		session := trial.Load(t, b, graph.LoadOptions{Seed: trial.RunSeed}, 1)
		read := func(suffix string) []float64 {
			return append(trial.Values(t, session, p.names()[0]+suffix, 0, p.sizes()[0]), trial.Values(t, session, p.names()[1]+suffix, 0, p.sizes()[1])...)
		}
		gradient, want := p.derivatives(read(""))
		sums, squares := make([]float64, len(want)), make([]float64, len(want))
		for range c.steps {
			trial.Advance(t, session, 1)
			for i, v := range read(".slope of the second moment") {
				estimate := v / (2 * gradient[i])
				sums[i] += estimate
				squares[i] += estimate * estimate
			}
		}
		n := float64(c.steps)
		for i := range want {
			mean := sums[i] / n
			bound := c.tolerance * (1 + math.Abs(want[i]))
			if c.tolerance == 0 {
				bound = trial.ZLimit*math.Sqrt((squares[i]/n-mean*mean)/n) + 1e-3*(1+math.Abs(want[i]))
			}
			if !(math.Abs(mean-want[i]) <= bound) {
				t.Errorf("%s, %v: element %d is %.6g, want %.6g within %.2g", c.gamma, c.dtype, i, mean, want[i], bound)
			}
		}
	}
}

// TestCurvatureOfConvolutions compares the product on a convolutional network with dropout with the
// gradients of a plain graph at displaced parameters.
func TestCurvatureOfConvolutions(t *testing.T) {
	const distance = 0x1p-10
	images := tensor.Shape{12, 2, 7, 6}
	build := func(b *graph.Builder) *graph.Node {
		x, labels := op.Minibatch(b, op.Batch{Size: 5, Order: op.Shuffled}, images, []float64{trial.ImageMean}, []float64{trial.ImageSpread})
		for _, layer := range []layers.Layer{
			layers.Conv2D{Filters: 3, Kernel: 3, Padding: 1}, layers.FilterResponseNorm{}, layers.MaxPool{Window: 2},
			layers.Dropout{Rate: 0.2}, layers.Flatten{}, layers.Linear{Outputs: 4},
		} {
			x = layer.Apply(b, x)
		}
		return b.Apply(op.CrossEntropy{}, x, labels)
	}
	write := func(s *graph.Session) {
		if err := graph.Write(s, "images", 0, 0, trial.SomeBytes(images.Elements(), 256, 1)); err != nil {
			t.Fatal(err)
		}
		if err := graph.Write(s, "labels", 0, 0, trial.SomeLabels(images[0], 2)); err != nil {
			t.Fatal(err)
		}
	}
	b := graph.New(tensor.Float64)
	sampler := langevin.PSGLD{Lambda: 1, Gamma: langevin.GammaHutchinson, Distance: distance}
	loss := build(b)
	first := b.Stream() + 1 // of the signs
	if err := langevin.Attach(b, sampler, langevin.Posterior{DataSize: 12}, loss, []float64{0}, []float64{1}); err != nil {
		t.Fatal(err)
	}
	session := trial.Load(t, b, graph.LoadOptions{Seed: trial.RunSeed}, 1)
	write(session)

	plain := graph.New(tensor.Float64)
	loss = build(plain)
	parameters := plain.Parameters()
	for i, g := range plain.Gradients(loss, parameters...) {
		plain.Output("d "+parameters[i].Name(), g)
	}
	signs := map[string][]float64{}
	for i, p := range session.Program().Parameters() {
		words := make([]uint32, p.Shape.Elements())
		random.Bits(words, 0, random.Address{Seed: trial.RunSeed, Stream: first + uint16(i)})
		for _, word := range words {
			signs[p.Name] = append(signs[p.Name], 1-2*float64(word>>31))
		}
	}
	gradientsAt := func(by float64) map[string][]float64 {
		s := trial.Load(t, plain, graph.LoadOptions{Seed: trial.RunSeed}, 1)
		write(s)
		for name, z := range signs {
			theta := trial.Values(t, s, name, 0, len(z))
			for j := range theta {
				theta[j] += by * z[j]
			}
			if err := graph.Write(s, name, 0, 0, theta); err != nil {
				t.Fatal(err)
			}
		}
		trial.Advance(t, s, 1)
		gradients := map[string][]float64{}
		for name, z := range signs {
			gradients[name] = trial.Values(t, s, "d "+name, 0, len(z))
		}
		return gradients
	}
	middle, up, down := gradientsAt(0), gradientsAt(distance), gradientsAt(-distance)
	trial.Advance(t, session, 1)
	for name, z := range signs {
		largest := 0.0
		for j, got := range trial.Values(t, session, name+".slope of the second moment", 0, len(z)) {
			want := 2 * middle[name][j] * z[j] * (up[name][j] - down[name][j]) / (2 * distance)
			largest = math.Max(largest, math.Abs(want))
			if !(math.Abs(got-want) <= 1e-9*(1+math.Abs(want))) {
				t.Errorf("%s, element %d: 2 g z H z is %v, want %v", name, j, got, want)
			}
		}
		if largest < 1e-4 {
			t.Errorf("%s: there is hardly any curvature: %v at most", name, largest)
		}
	}
}

// TestPriorCurvature compares with differences of the slopes.
func TestPriorCurvature(t *testing.T) {
	const d = 1e-5
	for _, prior := range append(everyPrior, langevin.ScaleMixture(0.3, 1.5, 0.2)) {
		for _, theta := range []float64{-2, -0.3, 0.01, 0.4, 1.7} {
			up, _ := langevin.SlopeAndCurvature(prior, 20, theta+d)
			down, _ := langevin.SlopeAndCurvature(prior, 20, theta-d)
			want := (up - down) / (2 * d)
			if _, got := langevin.SlopeAndCurvature(prior, 20, theta); math.Abs(got-want) > 1e-6*(1+math.Abs(want)) {
				t.Errorf("%v at %v: curvature %v, want %v", prior, theta, got, want)
			}
		}
	}
}
