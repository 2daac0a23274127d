package mcmc_test

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/mcmc"
	"github.com/pollen-ml/pollen/tensor"
)

// regression is y = X beta + noise of variance 1, with the prior N(0, deviation^2) of each
// coefficient.
type regression struct {
	x, y             []float64
	examples, inputs int
	std              float64
}

func newRegression(examples, inputs int) regression {
	r := regression{x: trial.NormalDraws(examples*inputs, 11), y: trial.NormalDraws(examples, 12), examples: examples, inputs: inputs, std: 0.8}
	for i := range examples {
		row := r.x[i*inputs : (i+1)*inputs]
		for j := range row {
			row[j] += 0.8 * row[0] // inputs are correlated
			r.y[i] += float64(j+1) / float64(inputs) * row[j]
		}
	}
	return r
}

// posterior is the exact posterior at temperature T: with A = X'X + I/deviation^2, its covariance
// is T A^-1, its mean A^-1 X'y.
func (r regression) posterior(temperature float64) (mean []float64, covariance *mat.Dense) {
	x := mat.NewDense(r.examples, r.inputs, r.x)
	var precision, inverse mat.Dense
	precision.Mul(x.T(), x)
	for i := range r.inputs {
		precision.Set(i, i, precision.At(i, i)+1/(r.std*r.std))
	}
	if err := inverse.Inverse(&precision); err != nil {
		panic(err)
	}
	var projected, center mat.VecDense
	projected.MulVec(x.T(), mat.NewVecDense(r.examples, r.y))
	center.MulVec(&inverse, &projected)
	inverse.Scale(temperature, &inverse)
	return center.RawVector().Data, &inverse
}

// potential makes the graph as a network would, with a mean loss and a prior. The network computes
// in float.
func (r regression) potential(b *graph.Builder, float tensor.DType) (potential, weights *graph.Node) {
	end := b.Within(float)
	x := b.Table("x", r.x, r.examples, r.inputs)
	y := b.Table("y", r.y, r.examples, 1)
	loss := b.Apply(op.SquaredError{}, b.Apply(op.MatMul{TransposeB: true}, x, b.Parameter("linear.weight", nil, 1, r.inputs)), y)
	end()
	return langevin.Posterior{DataSize: r.examples, Prior: langevin.Gaussian(r.std)}.Potential(b, b.Cast(loss)), b.Parameters()[0]
}

// TestBayesianLinearRegression: mean and covariance of the conjugate posterior, also where the
// network computes in float32.
func TestBayesianLinearRegression(t *testing.T) {
	const temperature = 0.8
	r := newRegression(40, 4)
	mean, covariance := r.posterior(temperature)
	for _, c := range []struct {
		name    string
		sampler mcmc.Sampler
		float   tensor.DType
	}{
		{"HMC", mcmc.Metropolis{Proposal: mcmc.HMC{LeapfrogSteps: 8, Jitter: 0.2}, StepSize: 0.01, Warmup: 150, TargetAcceptance: 0.8}, tensor.Float64},
		{"HMC, float32", mcmc.Metropolis{Proposal: mcmc.HMC{LeapfrogSteps: 8, Jitter: 0.2}, StepSize: 0.01, Warmup: 150, TargetAcceptance: 0.8}, tensor.Float32},
		{"MALA", mcmc.Metropolis{Proposal: mcmc.MALA{}, StepSize: 0.001, Warmup: 300}, tensor.Float64},
		{"NUTS", mcmc.NUTS{Warmup: 200}, tensor.Float64},
		{"NUTS, float32", mcmc.NUTS{Warmup: 200}, tensor.Float32},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := graph.New(tensor.Float64)
			potential, weights := r.potential(b, c.float)
			chains, err := c.sampler.Attach(b, mcmc.Target{Potential: potential, Temperature: temperature, Quantities: []mcmc.Quantity{{"w", weights}}})
			if err != nil {
				t.Fatal(err)
			}
			session := trial.Load(t, b, graph.LoadOptions{Seed: trial.RunSeed, Chains: 4}, 0)
			traces := drawn(t, session, chains, trial.StepsOf(t, 500), 1)
			for i := range mean {
				checkExpected(t, fmt.Sprint("mean ", i), traceOf(t, traces, "w", i), mean[i])
				for j := range i + 1 {
					product := func(x []float64) float64 { return (x[0] - mean[i]) * (x[1] - mean[j]) }
					checkExpected(t, fmt.Sprint("covariance ", i, j), functionTrace(t, traces, "w", product, i, j), covariance.At(i, j))
				}
			}
		})
	}
}

// byteMean is the data of a mean: bytes as images of one pixel, each drawn from N(mean, 1) once it
// is divided by 255 and by pixelStd.
const pixelStd = 0.1

func byteMean(examples int) (images []byte, values []float64) {
	for i, z := range trial.NormalDraws(examples, 13) {
		images = append(images, byte(127+math.Round(255*pixelStd*z)))
		values = append(values, float64(images[i])/255/pixelStd)
	}
	return images, values
}

// loadMean is MALA for the mean of bytes, with the batches that it is given.
func loadMean(t *testing.T, images []byte, batch op.Batch, mala mcmc.MALA, step float64, count int) (*graph.Session, mcmc.Chains) {
	t.Helper()
	b := graph.New(tensor.Float64)
	data := b.Data("images", tensor.Uint8, len(images), 1, 1, 1)
	x := b.Apply(op.GatherImages{Batch: batch, Mean: op.ChannelsOf(0), Std: op.ChannelsOf(pixelStd)}, data, mala.BatchHeader(b))
	mean := b.Parameter("mean", nil, 1, 1, 1, 1)
	loss := b.Apply(op.Scale{Factor: 0.5 / float64(batch.Size)}, trial.SumOfSquares(b, b.Apply(op.Subtract{}, x, mean)))
	potential := langevin.Posterior{DataSize: len(images), Prior: langevin.Gaussian(10)}.Potential(b, loss)
	chains, err := mcmc.Metropolis{Proposal: mala, StepSize: step}.Attach(b, mcmc.Target{
		Potential: potential, Temperature: 1, Quantities: []mcmc.Quantity{{"mean", mean}},
	})
	if err != nil {
		t.Fatal(err)
	}
	session := trial.Load(t, b, graph.LoadOptions{Seed: trial.RunSeed, Chains: count}, 0)
	if err := graph.Write(session, "images", 0, 0, images); err != nil {
		t.Fatal(err)
	}
	return session, chains
}

// TestMALAOnMinibatch: with batches of all data it is MALA; with small ones it is not, and still
// follows the formula: both potentials of a test are of the same batch.
func TestMALAOnMinibatch(t *testing.T) {
	const examples = 60
	images, x := byteMean(examples)
	precision := examples + 0.01
	center := sumOf(x, identity) / precision
	deviate := func(x []float64) float64 { return (x[0] - center) * (x[0] - center) }
	mala := mcmc.MALA{Test: mcmc.AcceptanceMinibatch}

	session, chains := loadMean(t, images, op.Batch{Size: examples, Order: op.Shuffled}, mala, 0.02, trial.ChainsOf(t, 16))
	traces := drawn(t, session, chains, trial.StepsOf(t, 600), 1)
	checkExpected(t, "mean", traceOf(t, traces, "mean", 0), center)
	checkExpected(t, "variance", functionTrace(t, traces, "mean", deviate, 0), 1/precision)

	const size, step = 6, 0.002
	session, chains = loadMean(t, images, op.Batch{Size: size}, mala, step, trial.ChainsOf(t, 16))
	traces = drawn(t, session, chains, trial.StepsOf(t, 600), 1)
	if got := meanOf(functionTrace(t, traces, "mean", deviate, 0)) * precision; got < 1.2 {
		t.Errorf("the variance on minibatches is %v times that of all data, want more than 1: is this exact?", got)
	}
	checkMinibatchProposals(t, x, traces, size, step)
}

// checkMinibatchProposals computes the probabilities of acceptance of the first chain from its
// draws, where proposals were accepted: the rejected ones are not known.
func checkMinibatchProposals(t *testing.T, x []float64, traces *langevin.Traces, size int, step float64) {
	t.Helper()
	means, probabilities := traceOf(t, traces, "mean", 0)[0], traceOf(t, traces, mcmc.TraceAcceptance, 0)[0]
	n, moved := float64(len(x)), 0
	from := 0.0
	for i, to := range means {
		var batch []float64
		for j := range size {
			batch = append(batch, x[(i*size+j)%len(x)])
		}
		potential := func(theta float64) (u, slope float64) {
			for _, v := range batch {
				u += n / float64(size) * (v - theta) * (v - theta) / 2
				slope += n / float64(size) * (theta - v)
			}
			return u + theta*theta/200, slope + theta/100
		}
		if to != from {
			u0, g0 := potential(from)
			u1, g1 := potential(to)
			there, back := to-from+step*g0, from-to+step*g1
			want := math.Min(1, math.Exp(u0-u1+(there*there-back*back)/(4*step)))
			if math.Abs(probabilities[i]-want) > 1e-9 {
				t.Fatalf("proposal %d, from %v to %v, was accepted with probability %v, want %v", i, from, to, probabilities[i], want)
			}
			moved++
		}
		from = to
	}
	if moved < 100 {
		t.Errorf("only %d proposals of %d were accepted", moved, len(means))
	}
}
