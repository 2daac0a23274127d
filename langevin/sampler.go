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
	// Update attaches the update of one parameter. gradient is the gradient of the mean loss
	// without the prior; the update must add the prior's part, see Gradient. Update returns the
	// op's statistics, the sum of theta * g per tile, see op.UpdateShape. Errors go to b.Fail.
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

// withRest returns the sampler and, if it is a KSGLD with a Rest, that sampler too.
func withRest(sampler Sampler) []Sampler {
	if k, ok := sampler.(KSGLD); ok && k.Rest != nil {
		return []Sampler{sampler, k.Rest}
	}
	return []Sampler{sampler}
}
