package cuda_test

import (
	"math"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/cudatest"
	"github.com/pollen-ml/pollen/cuda/kernels"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/optest"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// quadratic makes parameters of sizes that fill no tile and no group of four, and a loss whose
// gradient is each parameter's distance from a target.
func quadratic(b *graph.Builder) *graph.Node { return quadratics(b, 1, 6, 4097, 9003) }

func quadratics(b *graph.Builder, sizes ...int) *graph.Node {
	var loss *graph.Node
	for i, size := range sizes {
		name := string(rune('a' + i))
		start := func(seed uint64, chain uint32, _ uint16, _ tensor.Shape, values []float64) {
			for j := range values {
				values[j] = float64(float32(math.Sin(float64(j*j) + float64(chain))))
			}
		}
		w := b.Parameter(name+".weight", start, size)
		term := b.Apply(op.SquaredError{}, w, b.State(name+".target", nil, size))
		if loss != nil {
			term = b.Apply(op.Add{}, loss, term)
		}
		loss = term
	}
	return loss
}

// update is a rule whose parameters and metrics are compared after some steps.
type update struct {
	name   string
	attach func(b *graph.Builder)
	// close is the tolerance of float32, absolute and relative: 0 if a step is only sums, products,
	// quotients and roots of float32s.
	close float64
	// zero ends the names of states, one for each parameter, that are set to 0 before the first
	// step.
	zero string
}

func updates() []update {
	var all []update
	for _, o := range []optimizers.Optimizer{
		optimizers.SGD{WeightDecay: 0.01}, optimizers.Momentum{Decay: 0.9, WeightDecay: 0.01}, optimizers.Nesterov{Decay: 0.9, WeightDecay: 0.01},
		optimizers.Adagrad{Epsilon: 1e-8, WeightDecay: 0.01}, optimizers.Adadelta{Decay: 0.9, Epsilon: 1e-6, WeightDecay: 0.01},
		optimizers.RMSProp{Decay: 0.9, Epsilon: 1e-8, WeightDecay: 0.01},
		optimizers.Adam{Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-8, WeightDecay: 0.01}, optimizers.AdamW{Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-8, WeightDecay: 0.01},
	} {
		all = append(all, update{o.Name(), func(b *graph.Builder) { optimize(b, o) }, 0, ""})
	}
	for name, prior := range map[string]langevin.Prior{
		"flat": langevin.Flat(), "gaussian": langevin.Gaussian(0.7), "laplace": langevin.Laplace(0.7), "student": langevin.StudentT(3, 0.7),
	} {
		all = append(all, sampler("sgld "+name, langevin.SGLD{}, prior, 1, 0))
	}
	all = append(all,
		sampler("sgld mixture", langevin.SGLD{}, langevin.ScaleMixture(0.3, 1, 0.1), 1, 1e-6),
		sampler("cold sgld", langevin.SGLD{}, langevin.Gaussian(1), 0, 0),
		sampler("psgld", langevin.PSGLD{Alpha: 0.9, Lambda: 0.1, Gamma: langevin.GammaNone}, langevin.Gaussian(1), 1, 0),
		sampler("frozen psgld", langevin.PSGLD{Alpha: 0.9, Lambda: 0.1, Gamma: langevin.GammaFrozen, FreezeAt: 2}, langevin.Gaussian(1), 1, 0),
		sampler("psgld with gamma", langevin.PSGLD{Alpha: 0.6, Lambda: 0.1, Gamma: langevin.GammaHutchinson}, langevin.StudentT(3, 1), 1, 1e-4),
		sampler("fsgld", langevin.FisherSGLD{Alpha: 0.9, Damping: 0.1, FreezeAt: 2}, langevin.Gaussian(1), 1, 0),
		sampler("sghmc", langevin.SGHMC{Friction: 0.1, NoiseEstimate: 0.02}, langevin.Gaussian(1), 1, 0),
		sampler("frozen psghmc", langevin.PSGHMC{Friction: 0.1, Alpha: 0.9, Lambda: 0.1, Gamma: langevin.GammaFrozen, FreezeAt: 2}, langevin.Gaussian(1), 1, 0),
		sampler("baoab", langevin.BAOAB{Friction: 0.1}, langevin.Gaussian(1), 1, 1e-6),
	)
	for _, splitting := range []langevin.Splitting{langevin.SplittingEuler, langevin.SplittingBADODAB} {
		for _, perElement := range []bool{false, true} {
			s := langevin.SGNHT{Friction: 0.1, Splitting: splitting, PerElement: perElement, Coupling: 1e-3}
			name := "sgnht " + string(splitting)
			if perElement {
				name += " per element"
			}
			all = append(all, sampler(name, s, langevin.Gaussian(1), 1, 1e-5))
		}
	}
	all = append(all, sampler("ccadl", langevin.CCAdL{Friction: 0.1, Alpha: 0.6, Coupling: 1e-3}, langevin.Gaussian(1), 1, 1e-5))
	all = append(all, sampler("smile", langevin.SMILE{Friction: 0.1}, langevin.Gaussian(1), 1, 1e-5))
	for _, name := range bayes.MethodNames() {
		method, err := bayes.ParseMethod(name)
		if err != nil {
			panic(err) // of the table itself
		}
		// KSGLD needs layers.
		if s, ok := method.(langevin.Sampler); ok && name != "ksgld" {
			all = append(all, sampler("customary "+name, langevin.FrozenAt(s, 2), langevin.Gaussian(1), 1, 1e-5))
		}
	}
	return all
}

func optimize(b *graph.Builder, o optimizers.Optimizer) {
	loss := quadratic(b)
	parameters := b.Parameters()
	var rates *graph.Node
	if optimizers.UsesRates(o) {
		rates = b.Table("rates", []float64{0.1, 0.05, 0.01})
	}
	for i, statistic := range optimizers.Update(b, o, parameters, b.Gradients(loss, parameters...), rates) {
		b.Record("statistic "+parameters[i].Name(), statistic)
	}
}

func sampler(name string, s langevin.Sampler, prior langevin.Prior, temperature, tolerance float64) update {
	return samplerOf(quadratic, name, s, prior, temperature, tolerance)
}

func samplerOf(target func(b *graph.Builder) *graph.Node, name string, s langevin.Sampler, prior langevin.Prior, temperature, tolerance float64) update {
	return update{name, func(b *graph.Builder) {
		loss := target(b)
		posterior := langevin.Posterior{DataSize: 50, Prior: prior}
		// Both fail the builder, whose error the caller sees.
		_ = langevin.Attach(b, s, posterior, loss, []float64{0.002, 0.001, 0.002}, []float64{temperature, temperature, temperature / 2})
	}, tolerance, ""}
}

// TestUpdatesAreTheHosts runs steps on both devices. Parameters must be equal within an update's
// tolerance, which is 0 for many, and metrics up to rounding.
func TestUpdatesAreTheHosts(t *testing.T) {
	device := cudatest.GPU(t, cuda.Options{})
	host := tensor.NewHost(1)
	defer host.Close()
	compareAll(t, updates(), device, host)
}

// TestUpdatesOfManyTiles: if a parameter has many tiles, a block has several of them, and the last
// block has fewer.
func TestUpdatesOfManyTiles(t *testing.T) {
	device := cudatest.GPU(t, cuda.Options{})
	host := tensor.NewHost(1)
	defer host.Close()
	wide := func(b *graph.Builder) *graph.Node { return quadratics(b, 256*random.BlockSize+5) }
	for _, s := range []langevin.Sampler{
		langevin.PSGLD{Alpha: 0.9, Lambda: 0.1, Gamma: langevin.GammaNone}, langevin.SGHMC{Friction: 0.1},
		langevin.SGNHT{Friction: 0.1, Splitting: langevin.SplittingBADODAB, Coupling: 1e-3},
	} {
		t.Run(s.Name(), func(t *testing.T) {
			compareUpdates[float32](t, samplerOf(wide, s.Name(), s, langevin.Gaussian(1), 1, 1e-5), device, host, 1e-5)
		})
	}
}

// joinedOnce is a device that remembers the numbers of rows of the updates in the last workload
// that it loaded.
type joinedOnce struct {
	tensor.Device
	rows []int
}

func (d *joinedOnce) Load(s tensor.Workload) (tensor.Runner, error) {
	r, err := d.Device.Load(s)
	if err == nil {
		d.rows = cuda.Rows(r)
	}
	return r, err
}

// TestUpdatesOfManyParameters updates more parameters than one call can, of one block and of
// several.
func TestUpdatesOfManyParameters(t *testing.T) {
	gpu := cudatest.GPU(t, cuda.Options{})
	cuda.PlanFor(gpu, 132) // on which the work of these updates is much less than a launch
	device := &joinedOnce{Device: gpu}
	host := tensor.NewHost(1)
	defer host.Close()
	many := func(b *graph.Builder) *graph.Node {
		return quadratics(b, 3, random.BlockSize+2, 1, 70, random.BlockSize, 5, 6, 7, 8, 9, 31, 32, 33, 34, 35)
	}
	thermostat := langevin.SGNHT{Friction: 0.1, Splitting: langevin.SplittingBADODAB, Coupling: 1e-3}
	for _, s := range []langevin.Sampler{langevin.SGLD{}, langevin.BAOAB{Friction: 0.1}, thermostat} {
		t.Run(s.Name(), func(t *testing.T) {
			compareUpdates[float32](t, samplerOf(many, s.Name(), s, langevin.Gaussian(1), 1, 1e-5), device, host, 1e-5)
			full, rest := 0, 0
			for _, n := range device.rows {
				if n == kernels.MaxRows {
					full++
				} else if n == 15-kernels.MaxRows {
					rest++
				}
			}
			if full == 0 || full != rest || full+rest != len(device.rows) {
				t.Errorf("the updates of 15 parameters are calls of %v rows, want %d and the rest", device.rows, kernels.MaxRows)
			}
		})
	}
}

// compareAll compares each update in both types.
func compareAll(t *testing.T, list []update, device, host tensor.Device) {
	t.Helper()
	for _, u := range list {
		t.Run(u.name, func(t *testing.T) {
			compareUpdates[float32](t, u, device, host, u.close)
			compareUpdates[float64](t, u, device, host, 1e-13+u.close*1e-6)
		})
	}
}

const updateSteps, updateChains = 4, 2

func compareUpdates[T float32 | float64](t *testing.T, u update, device, host tensor.Device, tolerance float64) {
	t.Helper()
	got, want := moved[T](t, u, device), moved[T](t, u, host)
	for i, w := range want.parameters {
		if err := optest.Close(widen(got.parameters[i]), widen(w), optest.Tol{Abs: tolerance, Rel: tolerance}); err != nil {
			dump(t, err)
			t.Fatalf("%v: parameter %d: %v", tensor.DTypeOf[T](), i, err)
		}
	}
	if err := optest.Close(got.metrics, want.metrics, optest.Tol{Abs: 1e-5, Rel: 1e-5}); err != nil {
		dump(t, err)
		t.Fatalf("%v: metrics: %v", tensor.DTypeOf[T](), err)
	}
}

// outcome has the parameters of all chains after some steps, and the metrics of all steps.
type outcome[T float32 | float64] struct {
	parameters [][]T
	metrics    []float64
}

func moved[T float32 | float64](t *testing.T, u update, device tensor.Device) outcome[T] {
	t.Helper()
	b := graph.New(tensor.DTypeOf[T]())
	u.attach(b)
	s := load(t, b, device, updateChains)
	for chain := range updateChains {
		for _, p := range s.Program().Parameters() {
			if u.zero == "" {
				continue
			}
			if err := graph.Write(s, p.Name+u.zero, chain, 0, make([]T, p.Shape.Elements())); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.Run(updateSteps); err != nil {
		t.Fatal(err)
	}
	var result outcome[T]
	for chain := range updateChains {
		for _, p := range s.Program().Parameters() {
			values := make([]T, p.Shape.Elements())
			if err := graph.Read(s, p.Name, chain, 0, values); err != nil {
				t.Fatal(err)
			}
			result.parameters = append(result.parameters, values)
		}
		for _, metric := range s.Program().Metrics() {
			for step := range updateSteps {
				result.metrics = append(result.metrics, s.Metric(chain, metric, uint64(step)))
			}
		}
	}
	return result
}
