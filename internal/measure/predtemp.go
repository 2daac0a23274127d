package measure

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// The temperature of predictions. For any field F of the parameters E[F.gU] = T E[div F] under
// exp(-U/T). The configurational temperature uses theta for F, so that all weights count alike.
// Here F is gL, the gradient of the likelihood's part of U, so that a direction counts by how much
// predictions change along it. The noise of minibatches heats these few directions far more than
// the average one, and a thermostat, which controls the average, does not see that.
//
// div F is the trace of L's curvature, which has two parts. The curvature of the loss by the logits
// contributes the trace of the Fisher information: N times the mean square of one image's gradient,
// over images and over labels drawn from the network's own predictions. The curvature of the logits
// by the parameters, times residuals, contributes the rest of the change of the gradient along
// random directions v of signs,
//
//	v.(gL(theta + e v) - gL(theta)) / e - sum over images of the variance of v.grad logits,
//
// where the variance is over the network's own predictions. Its mean over v is that part of the
// trace, and it varies little, since the first part, with its few steep directions, is not in it.

// Measuring takes predictionPasses passes over the data for each sample. It takes at most
// predictionFraction of the passes that the run made, and at most maxPredictionSamples samples.
// Fewer than minPredictionSamples give no estimate of the error. For the error, samples are put
// into at most predictionGroups groups, each of samples that follow one another in a chain, which
// are taken as independent.
const (
	predictionPasses     = 3
	predictionFraction   = 0.15
	maxPredictionSamples = 64
	minPredictionSamples = 4
	predictionGroups     = 16
	predictionBatch      = 500
	// displacement is e, in units of the parameters' root mean square.
	displacement = 1e-2
)

// PredictionOptions set how the temperature of predictions is measured.
type PredictionOptions struct {
	Files   []string                      // the samples
	Passes  float64                       // over the data, that the run made
	Damaged func(err error)               // called for a sample that is damaged, and left out
	Observe func(done, total, images int) // called after each sample
}

// PredictionTemperature returns the temperature of what predictions depend on, over some of the
// samples. It is nil if that would take too long for enough of them, or the context ends.
func PredictionTemperature(ctx context.Context, device tensor.Device, s Subject, o PredictionOptions) (*diagnostics.Measured, error) {
	n := min(len(o.Files), maxPredictionSamples, int(predictionFraction*o.Passes/predictionPasses))
	if n < minPredictionSamples {
		return nil, nil
	}
	f, err := newField(device, s)
	if err != nil {
		return nil, err
	}
	defer f.close()
	var products, divergences []float64
	for i := range n {
		sample, err := samples.ReadSample(o.Files[(2*i+1)*len(o.Files)/(2*n)])
		if err != nil {
			o.Damaged(err)
			continue
		}
		product, divergence, err := f.at(ctx, sample)
		if ctx.Err() != nil {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if sum := product + divergence; sum-sum != 0 {
			o.Damaged(&samples.NotFiniteError{Chain: sample.Chain, Step: sample.Step, What: "gradient"})
			continue
		}
		products, divergences = append(products, product), append(divergences, divergence)
		o.Observe(i+1, n, predictionPasses*len(f.labels))
	}
	if len(products) < minPredictionSamples {
		return nil, nil
	}
	return ratio(products, divergences), nil
}

// ratio returns the ratio of two sums. Its standard error is the jackknife's: by leaving out, in
// turn, each group of consecutive terms, as if the groups were independent.
func ratio(over, under []float64) *diagnostics.Measured {
	above, below := floats.Sum(over), floats.Sum(under)
	groups := min(len(over), predictionGroups)
	squares, n := 0.0, float64(groups)
	for i := range groups {
		lo, hi := i*len(over)/groups, (i+1)*len(over)/groups
		off := (above-floats.Sum(over[lo:hi]))/(below-floats.Sum(under[lo:hi])) - above/below
		squares += off * off
	}
	return &diagnostics.Measured{Value: diagnostics.Number(above / below), StandardError: diagnostics.Number(math.Sqrt(squares * (n - 1) / n))}
}

// field computes gL, by programs for the gradients of the mean loss, step by step through the data,
// and of the prior.
type field struct {
	batch, classes int
	examples       float64
	labels         []int32
	random         *rand.Rand
	loss, prior    *graph.Session
}

func newField(device tensor.Device, s Subject) (f *field, err error) {
	n := len(s.Labels)
	steps, batch := fieldSteps(n)
	f = &field{batch: batch, classes: s.Classes, examples: float64(n), random: rand.New(rand.NewPCG(s.Seed, 0))}
	f.labels = s.Labels[:steps*f.batch] // all but fewer than steps of them
	if f.loss, err = lossGradients(device, s, s.Images.Slice(0, len(f.labels)), f.labels, op.Batch{Size: f.batch}); err != nil {
		return nil, err
	}
	if f.prior, err = priorGradients(device, s, f.loss.Program().Parameters()); err != nil {
		f.loss.Close()
		return nil, err
	}
	return f, nil
}

// fieldSteps returns the number of steps and the batch with which a field goes through n images.
func fieldSteps(n int) (steps, batch int) {
	steps = (n + predictionBatch - 1) / predictionBatch
	return steps, n / steps
}

func (f *field) close() {
	f.loss.Close()
	f.prior.Close()
}

// at returns gL.gU and the divergence of gL at a sample.
func (f *field) at(ctx context.Context, sample samples.Sample) (product, divergence float64, err error) {
	here, err := f.slopeAt(ctx, sample)
	if err != nil {
		return 0, 0, err
	}
	if err = sample.Put(f.prior, 0); err == nil {
		err = f.prior.Run(1)
	}
	if err == nil {
		err = readGradients(f.prior, sample, func(p, i int, g float64) { product += here.gradient[p][i] * (here.gradient[p][i] + g) })
	}
	if err != nil {
		return 0, 0, err
	}
	fisher, err := f.fisher(ctx, sample, here)
	if err != nil {
		return 0, 0, err
	}
	rest, err := f.curvatureOfLogits(ctx, sample, here)
	return product, fisher + rest, err
}

// slope is the likelihood around a sample: gL, and the logits of all images.
type slope struct {
	gradient [][]float64
	logits   []float32
}

func (f *field) slopeAt(ctx context.Context, sample samples.Sample) (slope, error) {
	here := slope{zeros(sample), make([]float32, 0, len(f.labels)*f.classes)}
	if err := sample.Put(f.loss, 0); err != nil {
		return here, err
	}
	steps := float64(len(f.labels) / f.batch)
	err := f.pass(ctx, f.labels, func() error {
		n := len(here.logits)
		here.logits = here.logits[:n+f.batch*f.classes]
		if err := f.loss.ReadFloats("logits", 0, here.logits[n:]); err != nil {
			return err
		}
		return readGradients(f.loss, sample, func(p, i int, g float64) { here.gradient[p][i] += f.examples / steps * g })
	})
	return here, err
}

// fisher returns the trace of the Fisher information at a sample.
func (f *field) fisher(ctx context.Context, sample samples.Sample, here slope) (trace float64, err error) {
	own := make([]int32, len(f.labels))
	for i := range own {
		own[i] = f.draw(softmax(here.logits[i*f.classes:][:f.classes]))
	}
	scale := f.examples * float64(f.batch*f.batch) / float64(len(f.labels))
	err = f.pass(ctx, own, func() error {
		return readGradients(f.loss, sample, func(_, _ int, g float64) { trace += scale * g * g })
	})
	return trace, err
}

// curvatureOfLogits estimates the rest of the divergence of gL, from a random direction.
func (f *field) curvatureOfLogits(ctx context.Context, sample samples.Sample, here slope) (trace float64, err error) {
	squares, n := 0.0, 0
	aside := samples.Sample{Parameters: slices.Clone(sample.Parameters)}
	for p := range aside.Parameters {
		values := slices.Clone(sample.Parameters[p].Values)
		for _, v := range values {
			squares += float64(v) * float64(v)
		}
		n += len(values)
		aside.Parameters[p].Values = values
	}
	distance := displacement * math.Sqrt(squares/float64(n))
	for _, p := range aside.Parameters {
		for i := range p.Values {
			p.Values[i] += float32(distance) * float32(2*f.random.IntN(2)-1)
		}
	}
	there, err := f.slopeAt(ctx, aside)
	if err != nil {
		return 0, err
	}
	for p, gradient := range there.gradient {
		for i, g := range gradient {
			trace += float64(aside.Parameters[p].Values[i]-sample.Parameters[p].Values[i]) * (g - here.gradient[p][i])
		}
	}
	for i := 0; i < len(here.logits); i += f.classes {
		before, after := here.logits[i:][:f.classes], there.logits[i:][:f.classes]
		mean, square := 0.0, 0.0
		for k, p := range softmax(before) {
			change := float64(after[k] - before[k])
			mean, square = mean+p*change, square+p*change*change
		}
		trace -= f.examples / float64(len(f.labels)) * (square - mean*mean)
	}
	return trace / (distance * distance), nil
}

// pass steps through the data once with some labels, and calls see after each step.
func (f *field) pass(ctx context.Context, labels []int32, see func() error) error {
	err := graph.Write(f.loss, "labels", 0, 0, labels)
	for range len(labels) / f.batch {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = f.loss.Run(1)
		}
		if err == nil {
			err = see()
		}
	}
	return err
}

// softmax returns the classes' probabilities.
func softmax(logits []float32) []float64 {
	most, sum, p := slices.Max(logits), 0.0, make([]float64, len(logits))
	for k, v := range logits {
		p[k] = math.Exp(float64(v - most))
		sum += p[k]
	}
	floats.Scale(1/sum, p)
	return p
}

// draw returns a random class, by its probability.
func (f *field) draw(probabilities []float64) int32 {
	left := f.random.Float64()
	for class, p := range probabilities {
		if left -= p; left < 0 {
			return int32(class)
		}
	}
	return int32(len(probabilities) - 1)
}
