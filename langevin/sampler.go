package langevin

import "github.com/pollen-ml/pollen/graph"

// Sampler is a rule that moves parameters so that their stationary distribution is close to
// exp(-U/T). A sampler is a struct whose exported fields are its attributes. EffectiveStepSizer and
// Freezer are optional interfaces.
type Sampler interface {
	// Name returns the name of the rule in the literature.
	Name() string
	// Validate reports attributes that are out of range or have no effect.
	Validate() error
	// Update attaches the update of one parameter, an op that is a graph.Updater of it. gradient is
	// the gradient of the mean loss without the prior; the update must add the prior's part, see
	// Gradient. Update returns the op's statistics, the sum of theta * g per tile, see
	// op.UpdateShape. Errors go to b.Fail.
	Update(b *graph.Builder, inputs UpdateInputs, parameter, gradient *graph.Node) *graph.Node
}

// UpdateInputs holds the inputs of a parameter's update except the parameter and its gradient.
type UpdateInputs struct {
	Name         string      // the parameter's name; the names of its states begin with it
	DataSize     int         // N, the number of training examples
	Prior        Prior       // of the parameter's elements
	Rates        *graph.Node // learning rates h N by step, or a single entry for the present step
	Temperatures *graph.Node // T, in the same form

	rows      int       // of the data set, from which minibatches are drawn
	stepSizes []float64 // step sizes h by step; nil if they depend on the chain
}

// lossDifferentiator is a Sampler that needs more of the loss than the parameters' gradients. It
// differentiates the loss itself, and returns the gradients and a sampler that holds the additional
// nodes. Attach then calls the Update of that sampler.
type lossDifferentiator interface {
	Sampler
	differentiate(b *graph.Builder, loss *graph.Node, parameters []*graph.Node) (Sampler, []*graph.Node)
}

// differentiate returns the gradients of the loss, and the sampler whose Update takes them.
func differentiate(b *graph.Builder, sampler Sampler, loss *graph.Node, parameters []*graph.Node) (Sampler, []*graph.Node) {
	if s, ok := sampler.(lossDifferentiator); ok {
		return s.differentiate(b, loss, parameters)
	}
	return sampler, b.Gradients(loss, parameters...)
}

// jointSampler is a Sampler that moves all parameters together. updates attaches the updates of all
// parameters and returns the statistics of each, as Update does for one.
type jointSampler interface {
	Sampler
	updates(b *graph.Builder, inputs []UpdateInputs, parameters, gradients []*graph.Node) []*graph.Node
}
