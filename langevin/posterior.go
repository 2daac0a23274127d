package langevin

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// Posterior is p(theta | D) with the potential U(theta) = N loss(theta) - log p(theta), where the
// loss is the mean negative log-likelihood of N data.
type Posterior struct {
	DataSize int              // N, the whole data set's, not the batch's
	Prior    Prior            // of all parameters
	Layers   map[string]Prior // of the parameters of some layers, or of one parameter, by name; override Prior
}

// Validate refuses an empty data set, one that a kernel's 32 bits cannot count, and invalid priors.
func (p Posterior) Validate() error {
	if p.DataSize < 1 || p.DataSize > math.MaxInt32 {
		return errors.Errorf("langevin: posterior: DataSize must be 1 to %d, got %d", math.MaxInt32, p.DataSize)
	}
	if err := p.Prior.Validate(); err != nil {
		return err
	}
	for name, prior := range p.Layers {
		if err := prior.Validate(); err != nil {
			return errors.Wrapf(err, "layer %q", name)
		}
	}
	return nil
}

// Gaussian reports whether all priors are Gaussian.
func (p Posterior) Gaussian() bool {
	for _, prior := range append(slices.Collect(maps.Values(p.Layers)), p.Prior) {
		if prior.Kind != GaussianPrior && prior.Kind != FanInPrior {
			return false
		}
	}
	return true
}

// StepSize is the step size h of a learning rate on the mean loss: rate/N.
func (p Posterior) StepSize(rate float64) float64 { return rate / float64(p.DataSize) }

// StepSizes does the same for a whole schedule.
func (p Posterior) StepSizes(rates []float64) []float64 {
	h := make([]float64, len(rates))
	for i, rate := range rates {
		h[i] = p.StepSize(rate)
	}
	return h
}

// Priors are the priors of the parameters of these names and shapes, with a Gaussian for FanIn. An
// entry of Layers that fits none is an error.
func (p Posterior) Priors(names []string, shapes []tensor.Shape) ([]Prior, error) {
	if err := p.checkNames(names); err != nil {
		return nil, err
	}
	fanIns := map[string]int{} // of layers
	for i, name := range names {
		if layer := LayerOf(name); len(shapes[i]) > 1 {
			fanIns[layer] = max(fanIns[layer], shapes[i][1:].Elements())
		}
	}
	priors := make([]Prior, len(names))
	for i, name := range names {
		priors[i] = p.priorOf(name)
		if priors[i].Kind == FanInPrior {
			priors[i] = Gaussian(math.Sqrt(priors[i].Scale / float64(max(1, fanIns[LayerOf(name)]))))
		}
	}
	return priors, nil
}

// priorsOf are the priors of nodes.
func (p Posterior) priorsOf(parameters []*graph.Node) ([]Prior, error) {
	var names []string
	var shapes []tensor.Shape
	for _, parameter := range parameters {
		names, shapes = append(names, parameter.Name()), append(shapes, graph.ShapeOf(parameter))
	}
	return p.Priors(names, shapes)
}

// priorOf is the prior of a parameter: its own, its layer's, or the common one.
func (p Posterior) priorOf(parameter string) Prior {
	if prior, ok := p.Layers[parameter]; ok {
		return prior
	}
	if prior, ok := p.Layers[LayerOf(parameter)]; ok {
		return prior
	}
	return p.Prior
}

// LayerOf is the layer a parameter belongs to: "conv1" for "conv1.weight".
func LayerOf(parameter string) string {
	if i := strings.LastIndexByte(parameter, '.'); i >= 0 {
		return parameter[:i]
	}
	return parameter
}

// Sampler is a rule that moves a parameter so that its stationary distribution is near exp(-U/T).
type Sampler interface {
	// Name is what the rule is called in the literature.
	Name() string
	// Validate refuses attributes out of their range.
	Validate() error
	// Update attaches the move of one parameter, given the gradient of the mean loss; see Force.
	Update(b *graph.Builder, inputs UpdateInputs, parameter, gradient *graph.Node) *graph.Node
}

// UpdateInputs is what drives a parameter besides the gradient.
type UpdateInputs struct {
	Name         string      // of the parameter
	DataSize     int         // N
	Prior        Prior       // of the parameter's elements
	Rates        *graph.Node // a table of h N, by step, or one entry for the present step
	Temperatures *graph.Node // a table of T, by step, likewise
}

// VirialPrefix begins the names of the metrics that Attach records: the sum over a parameter's
// elements of theta * g, g the gradient of U/N that the update followed.
const VirialPrefix = "theta.g "

// Attach differentiates the loss, the mean negative log-likelihood of a minibatch, and attaches the
// sampler's updates to all parameters. The tables have the step size h and the temperature T of
// each step; the last entries hold for all later steps. An error is the builder's too.
func Attach(b *graph.Builder, sampler Sampler, posterior Posterior, loss *graph.Node, stepSizes, temperatures []float64) error {
	parameters := b.Parameters()
	b.Fail(checkAttach(sampler, posterior, parameters, stepSizes, temperatures))
	if b.Err() != nil {
		return b.Err()
	}
	sampler, gradients := differentiate(b, sampler, loss, parameters)
	return attachUpdates(b, sampler, posterior, gradients, posterior.rates(b, stepSizes), b.Table("temperatures", temperatures))
}

// rates is the table of h N.
func (p Posterior) rates(b *graph.Builder, stepSizes []float64) *graph.Node {
	rates := make([]float64, len(stepSizes))
	for i, h := range stepSizes {
		rates[i] = h * float64(p.DataSize)
	}
	return b.Table("rates", rates)
}

// attachUpdates attaches the updates of all parameters, given estimates of the gradients of the
// mean loss.
func attachUpdates(b *graph.Builder, sampler Sampler, posterior Posterior, gradients []*graph.Node, rates, temperatures *graph.Node) error {
	inputs := UpdateInputs{DataSize: posterior.DataSize, Rates: rates, Temperatures: temperatures}
	priors, err := posterior.priorsOf(b.Parameters())
	if err != nil {
		b.Fail(err)
		return b.Err()
	}
	for i, parameter := range b.Parameters() {
		inputs.Name, inputs.Prior = parameter.Name(), priors[i]
		end := b.Scope(LayerOf(inputs.Name))
		b.Record(VirialPrefix+inputs.Name, sampler.Update(b, inputs, parameter, gradients[i]))
		end()
	}
	return b.Err()
}

// checkAttach refuses what no way to attach a sampler can take.
func checkAttach(sampler Sampler, posterior Posterior, parameters []*graph.Node, stepSizes, temperatures []float64) error {
	for _, err := range []error{
		posterior.Validate(), sampler.Validate(), checkTables(stepSizes, temperatures), checkLayers(posterior, parameters),
		checkByLayer(sampler, parameters),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

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

// checkLayers refuses a network without parameters, and priors of layers that it does not have.
func checkLayers(p Posterior, parameters []*graph.Node) error {
	if len(parameters) == 0 {
		return errors.New("langevin: attach: the graph has no parameters to sample")
	}
	_, err := p.priorsOf(parameters)
	return err
}

// checkNames refuses priors of layers that are not among the parameters.
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
