package pollen

import (
	"math"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// heatingBatches is how many minibatches the variance of gradients is estimated from.
const heatingBatches = 32

// heating is an estimate of what the noise of minibatches would add to the temperature of each
// parameter if nothing was done against it, in units of the temperature: the mean over its elements
// of h Var(gU)/(2T), h being the step size of SGLD that moves the element as far (see
// langevin.EffectiveStepSize), with the variance of gU at the present state of one chain. It is nil
// for methods that do not step along minibatches' gradients alone.
func (t *training) gradientNoise(device tensor.Device) (map[string]float64, error) {
	s, ok := t.kind.(minibatchKind)
	if !ok || t.spec.Anchor > 0 || t.spec.temperature() == 0 || t.session.Steps() == 0 {
		return nil, nil
	}
	cold, err := t.replicas.Cold(t.session)
	if err != nil {
		return nil, err
	}
	state, err := samples.FromSession(t.session, cold[0], 1)
	if err != nil {
		return nil, err
	}
	variances, err := t.gradientVariances(device, state)
	if err != nil {
		return nil, err
	}
	n := float64(t.data.Len())
	h := t.rates[t.session.Steps()-1] / n
	heating := map[string]float64{}
	for name, variance := range variances {
		mobility, err := langevin.EffectiveStepSize(s.sampler, t.session, cold[0], name, len(variance), h)
		if err != nil || mobility == nil {
			return nil, err
		}
		for i, v := range variance {
			heating[name] += mobility[i] * n * n * v / (2 * t.spec.temperature()) / float64(len(variance))
		}
	}
	return heating, nil
}

// gradientVariances are the variances of the elements of the mean loss's gradients over
// minibatches, by parameter, at a state.
func (t *training) gradientVariances(device tensor.Device, state samples.Sample) (map[string][]float64, error) {
	images, labels := t.spread(heatingBatches * t.spec.Batch)
	session, err := t.gradients(device, images, labels, op.Batch{Size: t.spec.Batch, Shuffled: true})
	if err != nil {
		return nil, err
	}
	defer session.Close()
	if err := state.Put(session, 0); err != nil {
		return nil, err
	}
	sums, squares := zeros(state), zeros(state)
	for range heatingBatches {
		if err := session.Run(1); err != nil {
			return nil, err
		}
		err := gradientsOf(session, state, func(p, i int, g float64) {
			sums[p][i] += g
			squares[p][i] += g * g
		})
		if err != nil {
			return nil, err
		}
	}
	share := 1.0 // batches of all data, drawn without replacement, show by themselves how much less they vary
	if len(labels) < t.data.Len() {
		share -= float64(t.spec.Batch) / float64(t.data.Len())
	}
	variances := map[string][]float64{}
	for p, sum := range sums {
		for i, s := range sum {
			squares[p][i] = share * math.Max(0, squares[p][i]-s*s/heatingBatches) / (heatingBatches - 1)
		}
		variances[state.Parameters[p].Name] = squares[p]
	}
	return variances, nil
}

// gradients is a session whose steps leave the logits of minibatches of some images, and the
// gradients of their mean loss.
func (t *training) gradients(device tensor.Device, images []byte, labels []int32, batch op.Batch) (*graph.Session, error) {
	b := graph.New(tensor.Float32)
	x, y := op.Minibatch(b, batch, tensor.Shape{len(labels), t.data.Channels, t.data.Height, t.data.Width}, t.data.Mean, t.data.Std)
	network, err := t.spec.Build(t.data.Classes)
	if err != nil {
		return nil, err
	}
	logits, loss := inputs{network: network, x: t.spec.Augment.apply(b, x), labels: y}.loss(b)
	b.Output("logits", logits)
	session, err := t.gradientsBy(device, b, loss)
	if err != nil {
		return nil, err
	}
	return session, give(session, images, labels)
}

// priorGradients is a session whose steps leave the gradients of the prior's part of U.
func (t *training) priorGradients(device tensor.Device, parameters []graph.Tensor) (*graph.Session, error) {
	var names []string
	var shapes []tensor.Shape
	for _, p := range parameters {
		names, shapes = append(names, p.Name), append(shapes, p.Shape)
	}
	priors, err := t.posterior().Priors(names, shapes)
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
	return t.gradientsBy(device, b, energy)
}

// gradientsBy is a session whose steps leave the gradients of a node by all parameters.
func (t *training) gradientsBy(device tensor.Device, b *graph.Builder, of *graph.Node) (*graph.Session, error) {
	parameters := b.Parameters()
	for i, gradient := range b.Gradients(of, parameters...) {
		b.Output("gradient "+parameters[i].Name(), gradient)
	}
	program, err := b.Compile()
	if err != nil {
		return nil, err
	}
	return program.Load(device, graph.LoadOptions{Seed: t.spec.Seed})
}

// gradientsOf shows each element of each parameter's gradient that a step has left.
func gradientsOf(s *graph.Session, sample samples.Sample, see func(p, i int, g float64)) error {
	for p, parameter := range sample.Parameters {
		gradient := make([]float32, len(parameter.Values))
		if err := s.ReadFloats("gradient "+parameter.Name, 0, gradient); err != nil {
			return err
		}
		for i, g := range gradient {
			see(p, i, float64(g))
		}
	}
	return nil
}

// zeros is a number for each element of each parameter.
func zeros(sample samples.Sample) (all [][]float64) {
	for _, p := range sample.Parameters {
		all = append(all, make([]float64, len(p.Values)))
	}
	return all
}

// spread are at most n of the training images, evenly spaced, and their labels.
func (t *training) spread(n int) (images []byte, labels []int32) {
	n = min(n, t.data.Len())
	for i := range n {
		at := i * t.data.Len() / n
		images, labels = append(images, t.data.Image(at)...), append(labels, t.data.Labels[at])
	}
	return images, labels
}
