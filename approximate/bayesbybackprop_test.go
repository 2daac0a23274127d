package approximate_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/approximate"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// layered is a network of unchanged layers: the parameters conv.weight, conv.bias, output.weight
// and output.bias.
func layered(b *graph.Builder, x *graph.Node) *graph.Node {
	return layers.Sequential{
		layers.Conv2D{Name: "conv", Filters: 3, Kernel: 3}, layers.ReLU{}, layers.Flatten{},
		layers.Linear{Name: "output", Outputs: trial.NetworkLabels},
	}.Apply(b, x)
}

var layeredNames = []string{"conv.weight", "conv.bias", "output.weight", "output.bias"}

// fit is a network under Bayes by Backprop, or the plain one when q is nil, on minibatches of 15 of
// the 60 images.
type fit struct {
	builder          *graph.Builder
	q                *approximate.MeanField
	loss, divergence *graph.Node
}

const fitBatches = 4

func newFit(t testing.TB, v *approximate.BayesByBackprop, dtype tensor.DType) fit {
	t.Helper()
	f := fit{builder: graph.New(dtype)}
	b := f.builder
	images := tensor.Shape{trial.TrainingImages, trial.ImageChannels, trial.ImageHeight, trial.ImageWidth}
	batch := op.Batch{Size: trial.TrainingImages / fitBatches, Order: op.Shuffled}
	x, labels := op.Minibatch(b, batch, images, []float64{trial.ImageMean}, []float64{trial.ImageSpread})
	if v == nil {
		f.loss = b.Apply(op.CrossEntropy{}, layered(b, x), labels)
	} else {
		var logits *graph.Node
		logits, f.q = v.Apply(b, layered, x)
		f.loss, f.divergence = v.Loss(b, f.q, b.Apply(op.CrossEntropy{}, logits, labels))
	}
	if err := b.Err(); err != nil {
		t.Fatal(err)
	}
	return f
}

// train attaches an optimizer and records the loss.
func (f fit) train(t testing.TB) {
	t.Helper()
	b := f.builder
	parameters := b.Parameters()
	optimizers.Update(b, optimizers.Adam{Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}, parameters, b.Gradients(f.loss, parameters...),
		b.Table("rates", []float64{1e-2}))
	b.Record("loss", f.loss)
	b.Record("divergence", f.divergence)
	if err := b.Err(); err != nil {
		t.Fatal(err)
	}
}

func (f fit) load(t testing.TB, o graph.LoadOptions, threads int) *graph.Session {
	t.Helper()
	session := trial.Load(t, f.builder, o, threads)
	if err := graph.Write(session, "images", 0, 0, someImages()); err != nil {
		t.Fatal(err)
	}
	if err := graph.Write(session, "labels", 0, 0, trial.SomeLabels(trial.TrainingImages, 2)); err != nil {
		t.Fatal(err)
	}
	return session
}

func someImages() []byte { return trial.SomeBytes(trial.TrainingImages*trial.ImageSize, 256, 1) }

// sizes are the elements of a program's parameters.
func sizes(s *graph.Session) map[string]int {
	n := map[string]int{}
	for _, p := range s.Program().Parameters() {
		n[p.Name] = p.Shape.Elements()
	}
	return n
}

// mixed has a prior of each family.
func mixed() langevin.Posterior {
	return langevin.Posterior{
		DataSize: trial.TrainingImages, Prior: langevin.Gaussian(0.7),
		Layers: map[string]langevin.Prior{
			"conv": langevin.ScaleMixture(0.25, 1.5, 0.1), "output.bias": langevin.StudentT(3, 0.5), "conv.bias": langevin.Flat(),
		},
	}
}

func softplus(x float64) float64 { return math.Log(1 + math.Exp(x)) }

// TestLossFormula compares the loss of every step with F_i M/N, computed from the noise at its
// address, the densities, and the plain network's loss at the weights drawn.
func TestLossFormula(t *testing.T) {
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float64} {
		for _, frontLoaded := range []int{0, fitBatches} {
			t.Run(fmt.Sprintf("%v/front-loaded %d", dtype, frontLoaded), func(t *testing.T) {
				v := approximate.BayesByBackprop{Posterior: mixed(), InitialStd: 0.3, FrontLoaded: frontLoaded}
				f, plain := newFit(t, &v, dtype), newFit(t, nil, dtype)
				f.train(t)
				plain.builder.Output("loss", plain.loss)
				options := graph.LoadOptions{Seed: 9, FirstChain: 3}
				session, reference := f.load(t, options, 1), plain.load(t, options, 1)
				tolerance := map[tensor.DType]float64{tensor.Float32: 3e-6, tensor.Float64: 1e-12}[dtype]
				for step := range 3 * fitBatches / 2 {
					want := 0.0 // log q - log p
					for i, name := range layeredNames {
						n := sizes(reference)[name]
						mu, rho := trial.Values(t, session, name+".mu", 0, n), trial.Values(t, session, name+".rho", 0, n)
						prior, epsilon := priorOf(v.Posterior, name), make([]float64, n)
						random.Normals(epsilon, 0, random.Address{Seed: 9, Chain: 3, Step: uint64(step), Stream: uint16(3*i + 3)})
						for j, e := range epsilon {
							sigma := softplus(rho[j])
							epsilon[j] = mu[j] + sigma*e
							want += -math.Log(sigma) - e*e/2 - math.Log(2*math.Pi)/2 - prior.LogDensity(epsilon[j])
						}
						write(t, reference, name, epsilon)
					}
					trial.Advance(t, session, 1)
					trial.Advance(t, reference, 1)
					if got := session.Metric(0, "divergence", uint64(step)); !(math.Abs(got-want) <= tolerance*trial.TrainingImages) {
						t.Errorf("step %d: log q - log p is %v, want %v", step, got, want)
					}
					share := 1 / float64(fitBatches)
					if frontLoaded > 0 {
						share = math.Pow(2, float64(fitBatches-1-step%fitBatches)) / (math.Pow(2, fitBatches) - 1)
					}
					want = trial.Values(t, reference, "loss", 0, 1)[0] + share*want*fitBatches/trial.TrainingImages
					if got := session.Metric(0, "loss", uint64(step)); !(math.Abs(got-want) <= tolerance*10) {
						t.Errorf("step %d: loss is %v, want %v", step, got, want)
					}
				}
			})
		}
	}
}

// priorOf is a parameter's own prior, its layer's, or the common one.
func priorOf(p langevin.Posterior, name string) langevin.Prior {
	for _, key := range []string{name, langevin.LayerOf(name)} {
		if prior, ok := p.Layers[key]; ok {
			return prior
		}
	}
	return p.Prior
}

// write sets a parameter of chain 0, in the program's precision.
func write(t testing.TB, s *graph.Session, name string, v []float64) {
	t.Helper()
	err := graph.Write(s, name, 0, 0, v)
	if s.Program().DType() == tensor.Float32 {
		narrow := make([]float32, len(v))
		for i := range v {
			narrow[i] = float32(v[i])
		}
		err = graph.Write(s, name, 0, 0, narrow)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// variants are Bayes by Backprop with each option.
func variants() map[string]approximate.BayesByBackprop {
	gaussian := langevin.Posterior{
		DataSize: trial.TrainingImages, Prior: langevin.Gaussian(0.7), Layers: map[string]langevin.Prior{"conv": langevin.Gaussian(0.4)},
	}
	return map[string]approximate.BayesByBackprop{
		"drawn":                        {Posterior: mixed(), InitialStd: 0.2},
		"front-loaded":                 {Posterior: mixed(), InitialStd: 0.2, FrontLoaded: fitBatches},
		"closed form":                  {Posterior: gaussian, InitialStd: 0.2, ClosedForm: true},
		"local":                        {Posterior: mixed(), InitialStd: 0.2, LocalReparameterization: true},
		"local, closed form, weighted": {Posterior: gaussian, InitialStd: 0.2, FrontLoaded: 2, ClosedForm: true, LocalReparameterization: true},
	}
}

// TestGradients compares the gradients of the second step with finite differences of its loss, and
// with the interpreter's.
func TestGradients(t *testing.T) {
	for name, v := range variants() {
		t.Run(name, func(t *testing.T) {
			f := newFit(t, &v, tensor.Float64)
			b := f.builder
			b.Output("loss", f.loss)
			parameters := b.Parameters()
			gradients := b.Gradients(f.loss, parameters...)
			for i, p := range parameters {
				b.Output("d "+p.Name(), gradients[i])
			}
			options := graph.LoadOptions{Seed: 5}
			interpreter, err := graph.Interpret(b, options)
			if err != nil {
				t.Fatal(err)
			}
			images, err := interpreter.Input("images")
			if err != nil {
				t.Fatal(err)
			}
			copy(images.Data().([]byte), someImages())
			labels, err := interpreter.Input("labels")
			if err != nil {
				t.Fatal(err)
			}
			copy(labels.Data().([]int32), trial.SomeLabels(trial.TrainingImages, 2))
			session := f.load(t, options, 1)
			trial.Advance(t, session, 1)
			for range 2 {
				if err := interpreter.Step(); err != nil {
					t.Fatal(err)
				}
			}
			state := make([]byte, session.ChainBytes())
			if err := session.Save(0, state); err != nil {
				t.Fatal(err)
			}
			lossAt := func(name string, values []float64) float64 {
				if err := session.Restore(0, state, 1); err != nil {
					t.Fatal(err)
				}
				write(t, session, name, values)
				trial.Advance(t, session, 1)
				loss := make([]float64, 1)
				if err := graph.Read(session, "loss", 0, 0, loss); err != nil {
					t.Fatal(err)
				}
				return loss[0]
			}
			for i, p := range parameters {
				n := graph.ShapeOf(p).Elements()
				theta := trial.Values(t, session, p.Name(), 0, n)
				lossAt(p.Name(), theta)
				got := trial.Values(t, session, "d "+p.Name(), 0, n)
				want, err := interpreter.Value(gradients[i])
				if err != nil {
					t.Fatal(err)
				}
				for j := range n {
					if !(math.Abs(got[j]-want[j]) <= 1e-13*(1+math.Abs(want[j]))) {
						t.Fatalf("%s: gradient %d is %v, the interpreter's %v", p.Name(), j, got[j], want[j])
					}
					if j%37 != i%3 {
						continue
					}
					const d = 1e-5
					up, down := append([]float64{}, theta...), append([]float64{}, theta...)
					up[j] += d
					down[j] -= d
					if slope := (lossAt(p.Name(), up) - lossAt(p.Name(), down)) / (2 * d); !(math.Abs(got[j]-slope) <= 1e-7*(1+math.Abs(slope))) {
						t.Errorf("%s: gradient %d is %v, finite difference %v", p.Name(), j, got[j], slope)
					}
				}
			}
		})
	}
}

// TestZeroInputs: an example without any input has finite gradients under local reparameterization;
// scalars are parameters like any others.
func TestZeroInputs(t *testing.T) {
	v := approximate.BayesByBackprop{Posterior: langevin.Posterior{DataSize: 3, Prior: langevin.Gaussian(1)}, InitialStd: 0.1, LocalReparameterization: true}
	b := graph.New(tensor.Float32)
	y, q := v.Apply(b, func(b *graph.Builder, x *graph.Node) *graph.Node {
		return layers.Linear{Outputs: 2}.Apply(b, b.Apply(op.Multiply{}, x, b.Parameter("scale", trial.StartAt(1))))
	}, b.Data("x", tensor.Float32, 3, 4))
	loss, _ := v.Loss(b, q, b.Apply(op.SquaredError{}, y, b.Data("target", tensor.Float32, 3, 2)))
	for i, g := range b.Gradients(loss, b.Parameters()...) {
		b.Record(fmt.Sprint(i), g)
	}
	trial.Advance(t, trial.Load(t, b, graph.LoadOptions{}, 1), 2)
}

func TestBayesByBackpropRefuses(t *testing.T) {
	linear := layers.Linear{Name: "linear", Outputs: 2}.Apply
	good := approximate.BayesByBackprop{Posterior: langevin.Posterior{DataSize: 8, Prior: langevin.Gaussian(1)}, InitialStd: 0.1}
	type asked struct {
		v       approximate.BayesByBackprop
		network func(b *graph.Builder, x *graph.Node) *graph.Node
	}
	for want, change := range map[string]func(a *asked){
		"DataSize must be 1 to 2147483647, got 0":                 func(a *asked) { a.v.Posterior.DataSize = 0 },
		"InitialStd must be positive, got 0":                      func(a *asked) { a.v.InitialStd = 0 },
		"InitialStd must be positive, got NaN":                    func(a *asked) { a.v.InitialStd = math.NaN() },
		"InitialStd must be positive, got +Inf":                   func(a *asked) { a.v.InitialStd = math.Inf(1) },
		"for uniform weights, got -1":                             func(a *asked) { a.v.FrontLoaded = -1 },
		"at most the 8 examples, or 0 for uniform weights, got 9": func(a *asked) { a.v.FrontLoaded = 9 },
		"the prior of linear.bias must be Gaussian, got laplace:1": func(a *asked) {
			a.v.ClosedForm, a.v.Posterior.Layers = true, map[string]langevin.Prior{"linear.bias": langevin.Laplace(1)}
		},
		`layer "conv"`:  func(a *asked) { a.v.Posterior.Layers = map[string]langevin.Prior{"conv": langevin.Gaussian(1)} },
		"no parameters": func(a *asked) { a.network = layers.ReLU{}.Apply },
		"must have a linear layer": func(a *asked) {
			a.v.LocalReparameterization = true
			a.network = func(b *graph.Builder, x *graph.Node) *graph.Node {
				return b.Apply(op.BiasAdd{}, x, b.Parameter("b", nil, 3))
			}
		},
		"the name must be unique": func(a *asked) {
			a.network = func(b *graph.Builder, x *graph.Node) *graph.Node { return linear(b, linear(b, x)) }
		},
	} {
		a := asked{good, linear}
		change(&a)
		b := graph.New(tensor.Float32)
		x := b.Data("x", tensor.Float32, 5, 3)
		y, q := a.v.Apply(b, a.network, x)
		if loss, divergence := a.v.Loss(b, q, y); loss != nil || divergence != nil || b.Err() == nil || !strings.Contains(b.Err().Error(), want) {
			t.Errorf("error %v, want one with %q", b.Err(), want)
		}
	}
	b := graph.New(tensor.Float32)
	y, q := good.Apply(b, linear, b.Data("x", tensor.Float32, 5, 3))
	if b.Hooks.Parameter != nil || b.Hooks.Apply != nil || b.Err() != nil {
		t.Errorf("after Apply there are hooks, or the error %v", b.Err())
	}
	if good.Loss(b, q, y); b.Err() == nil || !strings.Contains(b.Err().Error(), "must be a scalar") {
		t.Errorf("error %v, want one about the loss's shape", b.Err())
	}
	b = graph.New(tensor.Float32)
	if good.Loss(b, q, nil); b.Err() == nil || !strings.Contains(b.Err().Error(), "the loss must not be nil") {
		t.Errorf("error %v, want one about a nil loss", b.Err())
	}
}

// TestLossDataSize: the divergence is divided by the number of rows that minibatches come from.
func TestLossDataSize(t *testing.T) {
	for dataSize, right := range map[int]bool{8: true, 7: false, 4: false} {
		v := approximate.BayesByBackprop{Posterior: langevin.Posterior{DataSize: dataSize, Prior: langevin.Gaussian(1)}, InitialStd: 0.1}
		b := graph.New(tensor.Float32)
		x := b.Apply(op.GatherRows{Batch: op.Batch{Size: 4}}, b.Data("x", tensor.Float32, 8, 3), b.Header())
		y, q := v.Apply(b, layers.Linear{Name: "linear", Outputs: 2}.Apply, x)
		v.Loss(b, q, b.Apply(op.Mean{}, y))
		if right != (b.Err() == nil) || !right && !strings.Contains(b.Err().Error(), "DataSize must be the number of examples, which is 8") {
			t.Errorf("%d examples: error %v", dataSize, b.Err())
		}
	}
}
