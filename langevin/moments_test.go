package langevin

import (
	"fmt"
	"math"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// quadratic is the loss 1/N sum over i of Curvature theta_i^2 / 2, whose gradient carries noise: that of U has standard deviation Noise, as
// a minibatch's has.
type quadratic struct {
	Curvature, Noise float64
	DataSize         int
	Stream           uint16
}

func (quadratic) Name() string                                { return "quadratic" }
func (quadratic) Shape([]tensor.Shape) (tensor.Shape, error) { return tensor.Shape{}, nil }

func (q quadratic) Lower(l *graph.Lowering) {
	l.Emit("test", 1, tensor.Single(graph.Pick(l, quadraticLoss[float32](q), quadraticLoss[float64](q))), l.Out(), l.In(0))
}

func quadraticLoss[T float32 | float64](q quadratic) func(a *tensor.Args) {
	return func(a *tensor.Args) {
		total := 0.0
		for _, theta := range tensor.Slice[T](a, 1) {
			total += q.Curvature * float64(theta) * float64(theta) / 2
		}
		tensor.Slice[T](a, 0)[0] = T(total / float64(q.DataSize))
	}
}

func (q quadratic) Gradients(b *graph.Builder, in []*graph.Node, _, _ *graph.Node) []*graph.Node {
	return []*graph.Node{b.Apply(quadraticGradient{q}, in[0], in[1]), nil}
}

type quadraticGradient struct{ loss quadratic }

func (quadraticGradient) Name() string                                   { return "quadratic gradient" }
func (quadraticGradient) Shape(in []tensor.Shape) (tensor.Shape, error) { return in[0], nil }

func (g quadraticGradient) Lower(l *graph.Lowering) {
	l.Emit("test", 1, tensor.Single(graph.Pick(l, quadraticSlope[float32](g.loss), quadraticSlope[float64](g.loss))), l.Out(), l.In(0), l.In(1))
}

func quadraticSlope[T float32 | float64](q quadratic) func(a *tensor.Args) {
	return func(a *tensor.Args) {
		slope, theta, header := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1), tensor.Slice[uint64](a, 2)
		var z [random.BlockSize]float32
		address := op.AddressOf(header, q.Stream)
		for i := range slope {
			if i%random.BlockSize == 0 && q.Noise > 0 {
				random.NormalBlock(address, i/random.BlockSize, &z)
			}
			slope[i] = T((q.Curvature*float64(theta[i]) + q.Noise*float64(z[i%random.BlockSize])) / float64(q.DataSize))
		}
	}
}

// gaussianRun is a sampler on a quadratic potential.
type gaussianRun struct {
	sampler          Sampler
	dimensions       int
	chains           int
	curvature, noise float64
	prior            Prior
	dataSize         int
	step             float64
	temperature      float64
	burnIn, steps    int
	start            float64
}

// moments are averages over chains, dimensions and steps.
type moments struct {
	mean, variance, lag1, virial float64
	count                        float64
}

func (r gaussianRun) run(t *testing.T) moments {
	t.Helper()
	b := graph.New(tensor.Float32)
	start := func(_ uint64, _ uint32, _ uint16, _ tensor.Shape, values []float64) {
		for i := range values {
			values[i] = r.start
		}
	}
	w := b.Parameter("w.weight", start, r.dimensions)
	loss := b.Apply(quadratic{r.curvature, r.noise, r.dataSize, b.Stream()}, w, b.Header())
	steps := constant(r.step, 1)
	posterior := Posterior{DataSize: r.dataSize, Prior: r.prior}
	if err := Attach(b, r.sampler, posterior, loss, steps, constant(r.temperature, 1)); err != nil {
		t.Fatal(err)
	}
	program, err := b.Compile()
	if err != nil {
		t.Fatal(err)
	}
	host := tensor.NewHost(0)
	defer host.Close()
	session, err := program.Load(host, graph.LoadOptions{Seed: 7, Chains: r.chains})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	for done := 0; done < r.burnIn; {
		n := min(100, r.burnIn-done)
		if err := session.Run(n); err != nil {
			t.Fatal(err)
		}
		done += n
	}
	return r.average(t, session)
}

func constant(value float64, n int) []float64 {
	table := make([]float64, n)
	for i := range table {
		table[i] = value
	}
	return table
}

func (r gaussianRun) average(t *testing.T, session *graph.Session) moments {
	thermometer := NewThermometer(session.Program(), r.dataSize)
	before := make([]float32, r.dimensions*r.chains)
	now := make([]float32, r.dimensions*r.chains)
	var m moments
	for step := range r.steps {
		from := int(session.Steps())
		if err := session.Run(1); err != nil {
			t.Fatal(err)
		}
		thermometer.Observe(session, from, from+1)
		for chain := range r.chains {
			if err := session.ReadFloats("w.weight", chain, now[chain*r.dimensions:(chain+1)*r.dimensions]); err != nil {
				t.Fatal(err)
			}
		}
		for i, v := range now {
			x := float64(v)
			m.mean += x
			m.variance += x * x
			if step > 0 {
				m.lag1 += x * float64(before[i])
			}
		}
		before, now = now, before
	}
	m.count = float64(r.steps * len(now))
	m.mean /= m.count
	m.variance /= m.count
	m.lag1 /= float64((r.steps - 1) * len(now))
	m.virial = thermometer.Temperature()
	return m
}

// zLimit is how many standard errors an average may be off its exact value.
const zLimit = 4.5

// check compares with the exact moments of the autoregression theta' = correlation theta + noise, of the given stationary variance.
func (m moments) check(t *testing.T, variance, correlation float64) {
	t.Helper()
	rho := correlation * correlation
	standardError := map[string]float64{
		"mean":     math.Sqrt(variance * (1 + correlation) / (1 - correlation) / m.count),
		"variance": variance * math.Sqrt(2*(1+rho)/(1-rho)/m.count),
		// Var(mean of x_t x_{t+1}) of a Gaussian autoregression, summed over lags (Isserlis).
		"lag 1": variance * math.Sqrt(lagVariance(correlation)/m.count),
	}
	for _, c := range []struct {
		name      string
		got, want float64
	}{{"mean", m.mean, 0}, {"variance", m.variance, variance}, {"lag 1", m.lag1, variance * correlation}} {
		if z := (c.got - c.want) / standardError[c.name]; math.Abs(z) > zLimit || math.IsNaN(z) {
			t.Errorf("%s is %.5g, want %.5g: z = %.1f", c.name, c.got, c.want, z)
		}
	}
}

func lagVariance(rho float64) float64 {
	total := 0.0
	for lag := -2000; lag <= 2000; lag++ {
		k := math.Abs(float64(lag))
		total += math.Pow(rho, 2*k) + math.Pow(rho, math.Abs(float64(lag)+1))*math.Pow(rho, math.Abs(float64(lag)-1))
	}
	return total
}

// sgldVariance is the exact stationary variance of SGLD on a quadratic of that curvature.
func sgldVariance(h, curvature, temperature, noise float64) float64 {
	a := 1 - h*curvature
	return (2*h*temperature + h*h*noise*noise) / (1 - a*a)
}

func TestSGLDStationaryMoments(t *testing.T) {
	for _, c := range []gaussianRun{
		{dimensions: 1, chains: 400, curvature: 2, dataSize: 10, step: 0.15, temperature: 1},
		{dimensions: 2, chains: 200, curvature: 0.5, noise: 1.5, dataSize: 100, step: 0.8, temperature: 0.5},
		{dimensions: 1000, chains: 1, curvature: 3, noise: 0.7, dataSize: 1, step: 0.1, temperature: 2},
		{dimensions: 1000, chains: 1, curvature: 1, dataSize: 50, prior: Gaussian(0.5), step: 0.05, temperature: 1},
	} {
		c.sampler, c.burnIn, c.steps = SGLD{}, 200, 600
		t.Run(fmt.Sprintf("%d dimensions, %v", c.dimensions, c.prior), func(t *testing.T) {
			curvature := c.curvature
			if c.prior.Kind == GaussianPrior {
				curvature += 1 / (c.prior.Scale * c.prior.Scale)
			}
			variance := sgldVariance(c.step, curvature, c.temperature, c.noise)
			m := c.run(t)
			m.check(t, variance, 1-c.step*curvature)
			// theta . grad U has the mean curvature * variance, since the gradient's noise is independent of theta.
			if want := curvature * variance; math.Abs(m.virial/want-1) > 0.02 {
				t.Errorf("configurational temperature is %.4g, want %.4g", m.virial, want)
			}
		})
	}
}

// The checks must fail for samplers that are wrong.
func TestSGLDMomentsTellWrongSamplers(t *testing.T) {
	right := gaussianRun{sampler: SGLD{}, dimensions: 1000, chains: 1, curvature: 1, dataSize: 10, step: 0.1, temperature: 1, burnIn: 200, steps: 300}
	for name, wrong := range map[string]gaussianRun{
		"noise of half the variance": with(right, func(r *gaussianRun) { r.temperature = 0.5 }),
		"drift doubled":              with(right, func(r *gaussianRun) { r.curvature = 2 }),
		"N left out":                 with(right, func(r *gaussianRun) { r.curvature = 0.1 }),
		"two percent more noise":     with(right, func(r *gaussianRun) { r.temperature = 1.04 }),
	} {
		m := wrong.run(t)
		variance := sgldVariance(right.step, right.curvature, right.temperature, 0)
		rho := 1 - right.step*right.curvature
		z := (m.variance - variance) / (variance * math.Sqrt(2*(1+rho*rho)/(1-rho*rho)/m.count))
		if math.Abs(z) < zLimit {
			t.Errorf("%s: the variance's z is %.1f: not noticed", name, z)
		}
	}
}

func with(r gaussianRun, change func(*gaussianRun)) gaussianRun {
	change(&r)
	return r
}
