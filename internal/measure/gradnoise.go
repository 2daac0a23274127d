package measure

import (
	"math"
	"slices"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// Subject is the object of a measurement: the chains of a session that sample a posterior of a
// network on data.
type Subject struct {
	Network     layers.Sequential
	Posterior   langevin.Posterior
	Temperature float64        // 0 for methods that do not sample
	Images      samples.Images // the training images, as the network reads them, Posterior.Copies of each
	Labels      []int32
	Classes     int
	Batch       int // rows of Images in a step
	Seed        uint64
	Session     *graph.Session
	predicting  bool // the network is built for predictions, without dropout

	// Augment changes the images of a minibatch as training does; it may return them as they are.
	Augment func(b *graph.Builder, x *graph.Node) *graph.Node
	// ClassWeights are the weights of the classes in the loss; nil for the weight 1.
	ClassWeights []float64
}

// noiseBatches is the number of minibatches for estimating the variance of gradients.
const noiseBatches = 32

// GradientNoise estimates how much the noise of minibatches would add to the temperature of each
// parameter if it were not compensated, in units of the temperature: the mean over its elements
// of h Var(gU)/(2T). h is the step size at which SGLD would move the element as far (see
// langevin.EffectiveStepSize), and Var(gU) is the variance at the present state of the given
// chain of the session. rate is the learning rate on the mean loss. The estimate is nil for
// samplers that have no such step size.
func GradientNoise(device tensor.Device, s Subject, sampler langevin.Sampler, chain int, rate float64) (map[string]float64, error) {
	state, err := samples.FromSession(s.Session, chain, 1)
	if err != nil {
		return nil, err
	}
	variances, err := gradientVariances(device, s, state)
	if err != nil {
		return nil, err
	}
	n := float64(s.Posterior.DataSize)
	noise := map[string]float64{}
	for name, variance := range variances {
		h, err := langevin.EffectiveStepSize(sampler, s.Session, chain, name, len(variance), rate/n)
		if err != nil || h == nil {
			return nil, err
		}
		for i, v := range variance {
			noise[name] += h[i] * n * n * v / (2 * s.Temperature) / float64(len(variance))
		}
	}
	return noise, nil
}

// gradientVariances returns the variances over minibatches of the elements of the mean loss's
// gradient at a state, by parameter.
func gradientVariances(device tensor.Device, s Subject, state samples.Sample) (map[string][]float64, error) {
	images, labels := evenlySpaced(s, noiseBatches*s.Batch)
	session, err := lossGradients(device, s, images, labels, op.Batch{Size: s.Batch, Order: op.Shuffled})
	if err != nil {
		return nil, err
	}
	defer session.Close()
	if err := state.Put(session, 0); err != nil {
		return nil, err
	}
	sums, squares := zeros(state), zeros(state)
	var buffer []float32
	for range noiseBatches {
		if err := session.Run(1); err != nil {
			return nil, err
		}
		err := readGradients(session, state, &buffer, func(p int, gradient []float32) {
			sum, square := sums[p], squares[p]
			for i, v := range gradient {
				g := float64(v)
				sum[i] += g
				square[i] += g * g
			}
		})
		if err != nil {
			return nil, err
		}
	}
	correction := finitePopulation(s.Batch, len(labels), len(s.Labels))
	variances := map[string][]float64{}
	for p, sum := range sums {
		for i, v := range sum {
			squares[p][i] = correction * math.Max(0, squares[p][i]-v*v/noiseBatches) / (noiseBatches - 1)
		}
		variances[state.Parameters[p].Name] = squares[p]
	}
	return variances, nil
}

// finitePopulation returns the factor that corrects the variance between minibatches of n
// examples, as it was measured on some of the examples. Minibatches are drawn without
// replacement, so they vary less than independent ones. A variance that was measured on a part of
// the data needs a correction for that; one that was measured on all data includes the effect.
func finitePopulation(batch, some, n int) float64 {
	if some < n {
		return 1 - float64(batch)/float64(n)
	}
	return 1
}

// lossGradients returns a session whose steps compute the logits of minibatches of some images, and
// the gradients of their mean loss.
func lossGradients(device tensor.Device, s Subject, images samples.Images, labels []int32, batch op.Batch) (*graph.Session, error) {
	program, err := lossProgram(s, len(labels), batch)
	if err != nil {
		return nil, err
	}
	session, err := program.Load(device, graph.LoadOptions{Seed: s.Seed})
	if err != nil {
		return nil, err
	}
	if err = images.Write(session); err == nil {
		err = graph.Write(session, "labels", 0, 0, labels)
	}
	if err == nil && s.ClassWeights != nil {
		err = WriteWeights(session, labels, s.ClassWeights)
	}
	if err != nil {
		session.Close()
		return nil, err
	}
	return session, nil
}

// lossProgram returns the program of lossGradients for n images.
func lossProgram(s Subject, n int, batch op.Batch) (*graph.Program, error) {
	b := graph.New(tensor.Float32)
	if s.predicting {
		b.Mode = graph.Prediction
	}
	x := s.Images.Input(b, batch, n)
	y := b.Apply(op.GatherLabels{Batch: batch}, b.Data("labels", tensor.Int32, n), b.Header())
	logits := s.Network.Apply(b, s.Augment(b, x))
	var weights *graph.Node
	if s.ClassWeights != nil {
		weights = GatherWeights(b, batch, n)
	}
	loss := Loss(b, logits, y, weights)
	b.Output("logits", logits)
	return gradients(b, loss)
}

// priorGradients returns a session whose steps compute the gradients of the prior's part of U.
func priorGradients(device tensor.Device, s Subject, parameters []graph.Tensor) (*graph.Session, error) {
	program, err := priorProgram(s, parameters)
	if err != nil {
		return nil, err
	}
	return program.Load(device, graph.LoadOptions{Seed: s.Seed})
}

// priorProgram returns the program of priorGradients.
func priorProgram(s Subject, parameters []graph.Tensor) (*graph.Program, error) {
	var names []string
	var shapes []tensor.Shape
	for _, p := range parameters {
		names, shapes = append(names, p.Name), append(shapes, p.Shape)
	}
	priors, err := s.Posterior.Priors(names, shapes)
	if err != nil {
		return nil, err
	}
	b := graph.New(tensor.Float32)
	var energy *graph.Node
	for i, prior := range priors {
		one := prior.Potential(b, b.Parameter(names[i], nil, shapes[i]...))
		if energy != nil {
			one = b.Apply(op.Add{}, energy, one)
		}
		energy = one
	}
	return gradients(b, energy)
}

// gradients returns a program whose steps compute the gradients of a node by all parameters.
func gradients(b *graph.Builder, of *graph.Node) (*graph.Program, error) {
	parameters := b.Parameters()
	for i, gradient := range b.Gradients(of, parameters...) {
		b.Output("gradient "+parameters[i].Name(), gradient)
	}
	return b.Compile()
}

// readGradients calls use with each parameter's gradient that a step has computed. use must not
// keep the gradient: all are read into one buffer, which grows if necessary.
func readGradients(s *graph.Session, sample samples.Sample, buffer *[]float32, use func(p int, gradient []float32)) error {
	for p, parameter := range sample.Parameters {
		n := len(parameter.Values)
		*buffer = slices.Grow((*buffer)[:0], n)[:n]
		if err := readGradient(s, parameter, *buffer); err != nil {
			return err
		}
		use(p, *buffer)
	}
	return nil
}

// readGradient reads a parameter's gradient that a step has computed.
func readGradient(s *graph.Session, parameter samples.Parameter, gradient []float32) error {
	return s.ReadFloats("gradient "+parameter.Name, 0, gradient)
}

// zeros returns a number for each element of each parameter.
func zeros(sample samples.Sample) (all [][]float64) {
	for _, p := range sample.Parameters {
		all = append(all, make([]float64, len(p.Values)))
	}
	return all
}

// evenlySpaced returns at most n images, evenly spaced, and their labels.
func evenlySpaced(s Subject, n int) (images samples.Images, labels []int32) {
	n = min(n, len(s.Labels))
	indices := make([]int, n)
	for i := range n {
		indices[i] = i * len(s.Labels) / n
		labels = append(labels, s.Labels[indices[i]])
	}
	return s.Images.Select(indices), labels
}
