package measure

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
)

// The divergence of the field gL is the trace of the likelihood's curvature, which has two parts.
// The curvature of the loss by the logits contributes the trace of the Fisher information: N times
// the mean square of one image's gradient, over images and over labels drawn from the network's
// own predictions. The curvature of the logits by the parameters, times residuals, contributes the
// rest of the change of the gradient along random directions v of signs,
//
//	v.(gL(theta + e v) - gL(theta)) / e - sum over images of the variance of v.grad logits,
//
// where the variance is over the network's own predictions. Its mean over v is that part of the
// trace, and it varies little, since the first part, with its few steep directions, is not in it.
//
// Networks of ReLUs are linear between kinks and need this part, too: the difference counts how
// the gradient jumps where a unit switches. Chains of exact HMC, which have T = 1, measure 1.094 ±
// .008 without it, and .990 ± .010 with it.
//
// The divergence of the second field needs no such split. Its directions count at most once, so
// that v.(F(theta + e v) - F(theta)) / e varies little.

const (
	// predictionBatch is the largest batch. If there are fewer images than predictionSteps such
	// batches, smaller batches are used, about predictionSteps of them.
	predictionBatch = 500
	predictionSteps = 128
	// displacement is e, in units of the parameters' root mean square.
	displacement = 1e-2
)

// The weightings of the directions of weight space.
const (
	byCurvature = iota
	byDetermination
	weightings
)

// terms are the terms of the temperatures at a sample: F.gU and the divergence of F, for each of
// the two fields.
type terms [weightings]struct{ product, divergence float64 }

// finite reports whether all terms are finite.
func (t terms) finite() bool {
	for _, one := range t {
		if sum := one.product + one.divergence; sum-sum != 0 {
			return false
		}
	}
	return true
}

// field computes both fields, by programs for the gradients of the mean loss, step by step through
// the data, and of the prior.
type field struct {
	batch, classes int
	examples       float64
	labels         []int32
	random         *rand.Rand
	loss, prior    *graph.Session
	determination  *determination
	buffer         []float32 // a parameter's gradient
}

func newField(device tensor.Device, s Subject) (f *field, err error) {
	s = s.deterministic()
	n := len(s.Labels)
	steps, batch := fieldSteps(n)
	f = &field{batch: batch, classes: s.Classes, examples: float64(s.Posterior.DataSize), random: rand.New(rand.NewPCG(s.Seed, 0))}
	f.labels = s.Labels[:steps*f.batch] // all but fewer than a batch of them
	if f.loss, err = lossGradients(device, s, s.Images.Slice(0, len(f.labels)), f.labels, op.Batch{Size: f.batch}); err != nil {
		return nil, err
	}
	if f.prior, err = priorGradients(device, s, f.loss.Program().Parameters()); err != nil {
		f.loss.Close()
		return nil, err
	}
	if f.determination, err = newDetermination(s, f.loss.Program().Parameters(), steps); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// fieldSteps returns the number of steps and the batch size with which a field goes through n
// images. It chooses a batch size that leaves out few images, fewer than a batch.
func fieldSteps(n int) (steps, batch int) {
	most := max(1, min(n*3/(2*predictionSteps), predictionBatch))
	batch = most
	for b := most; b >= max(1, n*3/(4*predictionSteps)); b-- {
		if n%b < n%batch {
			batch = b
		}
	}
	return n / batch, batch
}

// deterministic returns the subject with a network whose logits are a function of the parameters:
// without random operations such as dropout.
func (s Subject) deterministic() Subject {
	s.Network, s.predicting = withoutDropout(s.Network), true
	return s
}

// withoutDropout returns the layers with a dropout rate of 0. It keeps the dropout layers, since
// removing them would change the names of the layers after them.
func withoutDropout(network layers.Sequential) layers.Sequential {
	without := slices.Clone(network)
	for i, layer := range without {
		switch l := layer.(type) {
		case layers.Dropout:
			without[i] = layers.Dropout{}
		case layers.Sequential:
			without[i] = withoutDropout(l)
		case layers.Residual:
			l.Body, l.Shortcut = withoutDropout(l.Body), withoutDropout(l.Shortcut)
			without[i] = l
		}
	}
	return without
}

func (f *field) close() {
	f.loss.Close()
	f.prior.Close()
}

// at returns the terms of the temperatures at a sample.
func (f *field) at(ctx context.Context, sample samples.Sample) (t terms, err error) {
	here, err := f.slopeAt(ctx, sample)
	if err != nil {
		return t, err
	}
	prior, err := f.priorAt(sample)
	if err != nil {
		return t, err
	}
	fisher, err := f.fisher(ctx, sample, here)
	if err != nil {
		return t, err
	}
	aside, distance := f.displaced(sample)
	there, err := f.slopeAt(ctx, aside)
	if err != nil {
		return t, err
	}
	for p, gradient := range here.gradient {
		for i, g := range gradient {
			t[byCurvature].product += g * (g + prior[p][i])
		}
	}
	t[byCurvature].divergence = fisher + f.curvatureOfLogits(sample, here, aside, there, distance)
	if f.determination == nil {
		return t, nil
	}
	// G must be estimated with labels that do not depend on theta: the first sample's labels are
	// used for all samples.
	if f.determination.labels == nil {
		f.determination.labels = f.drawLabels(here)
	}
	determined, err := f.determinedAt(ctx, sample, here)
	if err != nil {
		return t, err
	}
	determinedThere, err := f.determinedAt(ctx, aside, there)
	if err != nil {
		return t, err
	}
	for p, gradient := range here.gradient {
		for i, g := range gradient {
			t[byDetermination].product += determined[p][i] * (g + prior[p][i])
			move := float64(aside.Parameters[p].Values[i]-sample.Parameters[p].Values[i]) / (distance * distance)
			t[byDetermination].divergence += move * (determinedThere[p][i] - determined[p][i])
		}
	}
	return t, nil
}

// priorAt returns the gradient of the prior's part of U.
func (f *field) priorAt(sample samples.Sample) ([][]float64, error) {
	if err := sample.Put(f.prior, 0); err != nil {
		return nil, err
	}
	if err := f.prior.Run(1); err != nil {
		return nil, err
	}
	gradient := zeros(sample)
	return gradient, readGradients(f.prior, sample, &f.buffer, func(p int, g []float32) { addScaled(gradient[p], 1, g) })
}

// slope is the likelihood around a sample: gL, and the logits of all images.
type slope struct {
	gradient [][]float64
	logits   []float32
}

// slopeAt returns the gradient of the loss of all images at a sample, and the logits there.
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
		return readGradients(f.loss, sample, &f.buffer, func(p int, g []float32) { addScaled(here.gradient[p], f.examples/steps, g) })
	})
	return here, err
}

// addScaled adds scale times x to sums.
func addScaled(sums []float64, scale float64, x []float32) {
	for i, v := range x[:len(sums)] {
		sums[i] += scale * float64(v)
	}
}

// drawLabels returns a label for each image, drawn from the network's own predictions.
func (f *field) drawLabels(here slope) []int32 {
	own := make([]int32, len(f.labels))
	for i := range own {
		own[i] = f.draw(softmax(here.logits[i*f.classes:][:f.classes]))
	}
	return own
}

// fisher returns the trace of the Fisher information at a sample.
func (f *field) fisher(ctx context.Context, sample samples.Sample, here slope) (trace float64, err error) {
	scale := f.examples * float64(f.batch*f.batch) / float64(len(f.labels))
	err = f.pass(ctx, f.drawLabels(here), func() error {
		return readGradients(f.loss, sample, &f.buffer, func(_ int, g []float32) {
			var square [1]float64
			kernel.WideSquaresPlanes(square[:], g, []float64{0})
			trace += scale * square[0]
		})
	})
	return trace, err
}

// displaced returns a sample moved by a distance along a random direction of signs.
func (f *field) displaced(sample samples.Sample) (aside samples.Sample, distance float64) {
	squares, n := 0.0, 0
	aside = samples.Sample{Parameters: slices.Clone(sample.Parameters)}
	for p := range aside.Parameters {
		values := slices.Clone(sample.Parameters[p].Values)
		for _, v := range values {
			squares += float64(v) * float64(v)
		}
		n += len(values)
		aside.Parameters[p].Values = values
	}
	distance = displacement * math.Sqrt(squares/float64(n))
	for _, p := range aside.Parameters {
		for i := range p.Values {
			p.Values[i] += float32(distance) * float32(2*f.random.IntN(2)-1)
		}
	}
	return aside, distance
}

// curvatureOfLogits estimates the rest of the divergence of gL, from a displacement.
func (f *field) curvatureOfLogits(sample samples.Sample, here slope, aside samples.Sample, there slope, distance float64) (trace float64) {
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
	return trace / (distance * distance)
}

// pass steps through the data once with the given labels, and calls see after each step.
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
