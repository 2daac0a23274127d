package langevin

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// Posterior is p(theta | D) with the potential U(theta) = N loss(theta) - log p(theta). The loss is
// the mean negative log-likelihood of N training examples.
type Posterior struct {
	DataSize int              // N, the examples of the whole data set, not of a batch
	Copies   int              // rows of the data set for each example, whose mean loss is the example's; 0 is 1
	Prior    Prior            // of all parameters; flat if it is left out
	Layers   map[string]Prior // of single layers ("conv1") or parameters ("conv1.bias"), by name; they override Prior

	// FanIns are the fan-ins of parameters by name. Others are weights [O I ...], whose fan-in is
	// the product of all extents except the first.
	FanIns map[string]int
}

// Validate reports an error if the data set is empty, has more examples than the 32 bits of kernels
// can count, or if a prior is invalid.
func (p Posterior) Validate() error {
	if p.DataSize < 1 || p.DataSize > math.MaxInt32 {
		return errors.Errorf("langevin: posterior: DataSize must be 1 to %d, got %d", math.MaxInt32, p.DataSize)
	}
	if p.Copies < 0 || p.rows() > math.MaxInt32 {
		return errors.Errorf("langevin: posterior: Copies must be 0 to %d for %d examples, got %d", math.MaxInt32/p.DataSize, p.DataSize, p.Copies)
	}
	if err := p.common().Validate(); err != nil {
		return err
	}
	for name, prior := range p.Layers {
		if err := prior.Validate(); err != nil {
			return errors.Wrapf(err, "layer %q", name)
		}
	}
	return nil
}

// rows returns the number of rows of the data set.
func (p Posterior) rows() int { return p.DataSize * max(1, p.Copies) }

// common returns the prior of the parameters that Layers does not name.
func (p Posterior) common() Prior {
	if p.Prior == (Prior{}) {
		return Flat()
	}
	return p.Prior
}

// Gaussian reports whether all priors are Gaussian.
func (p Posterior) Gaussian() bool {
	for _, prior := range append(slices.Collect(maps.Values(p.Layers)), p.common()) {
		if prior.Kind != GaussianPrior && prior.Kind != FanInPrior && prior.Kind != StartPrior {
			return false
		}
	}
	return true
}

// StepSize returns the step size h = rate/N of a learning rate on the mean loss.
func (p Posterior) StepSize(rate float64) float64 { return rate / float64(p.DataSize) }

// StepSizes returns the step sizes of a schedule of learning rates.
func (p Posterior) StepSizes(rates []float64) []float64 {
	h := make([]float64, len(rates))
	for i, rate := range rates {
		h[i] = p.StepSize(rate)
	}
	return h
}

// Priors returns the priors of parameters, given their names and shapes in the same order. FanIn
// and Start become the Gaussians that they stand for. A layer of p.Layers that has no parameter is
// an error.
func (p Posterior) Priors(names []string, shapes []tensor.Shape) ([]Prior, error) {
	if err := p.checkNames(names); err != nil {
		return nil, err
	}
	// A layer's fan-in is computed from its weights, which have more than one axis; its bias gets
	// the same fan-in.
	fanIns := map[string]int{} // of layers
	for i, name := range names {
		fanIn, given := p.FanIns[name]
		if !given && len(shapes[i]) > 1 {
			fanIn = shapes[i][1:].Elements()
		}
		layer := LayerOf(name)
		fanIns[layer] = max(fanIns[layer], fanIn)
	}
	priors := make([]Prior, len(names))
	for i, name := range names {
		priors[i] = p.PriorOf(name)
		if priors[i].Kind == StartPrior {
			priors[i] = Gaussian(priors[i].Scale)
		}
		if priors[i].Kind == FanInPrior {
			priors[i] = Gaussian(math.Sqrt(priors[i].Scale / float64(max(1, fanIns[LayerOf(name)]))))
		}
	}
	return priors, nil
}

// priorsOf returns the priors of a network's parameters, in their order. A network without
// parameters is an error.
func (p Posterior) priorsOf(parameters []*graph.Node) ([]Prior, error) {
	if len(parameters) == 0 {
		return nil, errors.New("langevin: attach: the graph has no parameters to sample")
	}
	var names []string
	var shapes []tensor.Shape
	for _, parameter := range parameters {
		names, shapes = append(names, parameter.Name()), append(shapes, graph.ShapeOf(parameter))
	}
	return p.Priors(names, shapes)
}

// PriorOf returns the prior of a parameter: its own, else its layer's, else the common one.
func (p Posterior) PriorOf(parameter string) Prior {
	if prior, ok := p.Layers[parameter]; ok {
		return prior
	}
	if prior, ok := p.Layers[LayerOf(parameter)]; ok {
		return prior
	}
	return p.common()
}

// VirialPrefix begins the names of the metrics that Attach records: for each parameter the sum over
// its elements of theta * g, where g is the gradient of U/N that the update followed.
const VirialPrefix = "theta.g "

// Attach differentiates the loss, the mean negative log-likelihood of a minibatch, and attaches the
// sampler's updates to all parameters of the builder. stepSizes and temperatures are h and T by
// step, of the same length; their last entries hold for all later steps. Both are kept, not copied,
// see Builder.Table. It returns the builder's error.
func Attach(b *graph.Builder, sampler Sampler, posterior Posterior, loss *graph.Node, stepSizes, temperatures []float64) error {
	return AttachScaled(b, sampler, posterior, loss, stepSizes, temperatures, nil, nil)
}

// AttachScaled is Attach with step sizes that each chain multiplies by one of the factors. The
// first element of state is the index of the chain's factor, see op.ScaledEntry. Without factors it
// is the same as Attach.
func AttachScaled(
	b *graph.Builder, sampler Sampler, posterior Posterior, loss *graph.Node, stepSizes, temperatures, factors []float64, state *graph.Node,
) error {
	parameters := b.Parameters()
	b.Fail(checkAttach(b, sampler, posterior, loss, stepSizes, temperatures))
	for _, factor := range factors {
		if !positive(factor) {
			b.Fail(errors.Errorf("langevin: attach: factors must be positive, got %v", factors))
		}
	}
	if b.Err() != nil {
		return b.Err()
	}
	sampler, gradients := differentiate(b, sampler, loss, parameters)
	inputs := posterior.updateInputs(b, stepSizes, temperatures)
	if len(factors) > 0 {
		inputs.stepSizes = nil
		inputs.Rates = b.Apply(op.ScaledEntry{}, inputs.Rates, b.Table("step factors", factors), state, b.Header())
	}
	return attachUpdates(b, sampler, posterior, gradients, inputs)
}

// updateInputs returns the inputs that all updates have in common.
func (p Posterior) updateInputs(b *graph.Builder, stepSizes, temperatures []float64) UpdateInputs {
	return UpdateInputs{
		DataSize: p.DataSize, rows: p.rows(), Rates: p.rates(b, stepSizes), Temperatures: b.Table("temperatures", temperatures), stepSizes: stepSizes,
	}
}

// rates returns the table of learning rates h N.
func (p Posterior) rates(b *graph.Builder, stepSizes []float64) *graph.Node {
	rates := make([]float64, len(stepSizes))
	for i, h := range stepSizes {
		rates[i] = h * float64(p.DataSize)
	}
	return b.Table("rates", rates)
}

// attachUpdates attaches the updates of all parameters. gradients are estimates of the mean loss's
// gradients, in the order of the parameters, and common has the inputs that all updates share.
func attachUpdates(b *graph.Builder, sampler Sampler, posterior Posterior, gradients []*graph.Node, common UpdateInputs) error {
	parameters := b.Parameters()
	priors, err := posterior.priorsOf(parameters)
	b.Fail(err)
	if b.Err() != nil {
		return b.Err()
	}
	inputs := make([]UpdateInputs, len(parameters))
	for i, parameter := range parameters {
		inputs[i] = common
		inputs[i].Name, inputs[i].Prior = parameter.Name(), priors[i]
	}
	if joint, ok := sampler.(jointSampler); ok {
		for i, statistics := range joint.updates(b, inputs, parameters, gradients) {
			b.Record(VirialPrefix+inputs[i].Name, statistics)
		}
		return b.Err()
	}
	for i, in := range inputs {
		// The scope names the nodes of the update after the layer, for errors.
		end := b.Scope(LayerOf(in.Name))
		before := len(b.Applications())
		statistics := sampler.Update(b, in, parameters[i], gradients[i])
		b.Fail(checkUpdate(b, sampler, parameters[i], statistics, before))
		b.Record(VirialPrefix+in.Name, statistics)
		end()
	}
	return b.Err()
}

// checkUpdate reports an Update of a sampler, usually one of another package, that returned no
// statistics or left the parameter as it is. before is the number of applications before it.
func checkUpdate(b *graph.Builder, sampler Sampler, parameter, statistics *graph.Node, before int) error {
	if b.Err() != nil {
		return nil
	}
	if statistics == nil {
		return errors.Errorf("langevin: attach: %s: Update of %s must return the update's statistics, or call b.Fail, got nil", sampler.Name(), parameter.Name())
	}
	for _, a := range b.Applications()[before:] {
		if update, ok := a.Op.(graph.Updater); ok {
			for _, i := range update.Updates() {
				if a.Inputs[i] == parameter {
					return nil
				}
			}
		}
	}
	return errors.Errorf("langevin: attach: %s: Update of %[2]s must apply a graph.Updater that changes %[2]s, got none", sampler.Name(), parameter.Name())
}

// checkAttach checks the arguments that all ways of attaching a sampler have in common.
func checkAttach(b *graph.Builder, sampler Sampler, posterior Posterior, loss *graph.Node, stepSizes, temperatures []float64) error {
	if sampler == nil {
		return errors.New("langevin: attach: the sampler must not be nil")
	}
	parameters := b.Parameters()
	_, priorsErr := posterior.priorsOf(parameters)
	return cmp.Or(
		posterior.Validate(), sampler.Validate(), checkTables(stepSizes, temperatures), priorsErr,
		checkByLayer(sampler, parameters), checkLoss(loss), posterior.CheckDataSize(b, loss), checkIndependent(b, sampler, loss),
	)
}

// checkTables reports tables of different lengths, and entries that are negative or not finite.
func checkTables(stepSizes, temperatures []float64) error {
	if len(stepSizes) == 0 || len(stepSizes) != len(temperatures) {
		return errors.Errorf("langevin: there must be a step size and a temperature for each of at least 1 step, got %d and %d", len(stepSizes), len(temperatures))
	}
	for i := range stepSizes {
		for _, v := range []float64{stepSizes[i], temperatures[i]} {
			if !(v >= 0 && v < math.Inf(1)) {
				return errors.Errorf("langevin: step %d: step size and temperature must be finite and at least 0, got %v and %v",
					i, stepSizes[i], temperatures[i])
			}
		}
	}
	return nil
}

// checkNames reports priors of layers that are not among the parameters.
func (p Posterior) checkNames(parameters []string) error {
	known := map[string]bool{}
	for _, name := range parameters {
		known[name] = true
		known[LayerOf(name)] = true
	}
	for name := range p.Layers {
		if !known[name] {
			return errors.Errorf("langevin: posterior: there is a prior for layer %q, which is not among the parameters %q", name, parameters)
		}
	}
	return nil
}
