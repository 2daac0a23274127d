package optimizers

import (
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// Optimizer is a rule that changes parameters at every step.
type Optimizer interface {
	// Name returns the rule's name in lower case.
	Name() string
	// Validate reports the first hyperparameter that is out of range.
	Validate() error
	// Update attaches a parameter's update. Its states are named after name. gradient is the
	// gradient of the mean loss. rates is a table by step, whose last entry holds for all later
	// steps; it is nil unless UsesRates. Update returns the statistic theta*g before the step,
	// summed by tile, see op.UpdateShape.
	Update(b *graph.Builder, name string, parameter, gradient, rates *graph.Node) *graph.Node
}

// UsesRates reports whether a rule takes a table of rates. Adadelta does not: it finds its own step
// sizes.
func UsesRates(o Optimizer) bool {
	_, own := o.(Adadelta)
	return !own
}

// Update attaches the updates of all parameters, each named after its node, and returns their
// statistics. Errors go to b.Fail.
func Update(b *graph.Builder, o Optimizer, parameters, gradients []*graph.Node, rates *graph.Node) []*graph.Node {
	statistics := make([]*graph.Node, len(parameters))
	if o == nil {
		b.Fail(errors.New("optimizers: update: the optimizer must not be nil"))
		return statistics
	}
	if len(parameters) != len(gradients) {
		b.Fail(errors.Errorf("optimizers: %s: there must be a gradient for each parameter, got %[3]d for %[2]d", o.Name(), len(parameters), len(gradients)))
	}
	for i, parameter := range parameters {
		if b.Err() != nil {
			return statistics
		}
		if parameter == nil {
			b.Fail(errors.Errorf("optimizers: %s: parameter %d must not be nil", o.Name(), i))
			return statistics
		}
		statistics[i] = o.Update(b, parameter.Name(), parameter, gradients[i], rates)
	}
	return statistics
}

// rule is an Optimizer with the methods that the update op needs.
type rule interface {
	Optimizer
	// states returns the names of the rule's states. Each has the parameter's shape and starts at
	// 0.
	states() []string
	// lower returns the host kernel for n parameters and the rule's scalars in the order in which
	// kernels take them, as float64 whatever the program's float type.
	lower(l *graph.Lowering, n int) (tensor.HostKernel, []float64)
}

// attach implements Update for every rule.
func attach(b *graph.Builder, r rule, name string, parameter, gradient, rates *graph.Node) *graph.Node {
	if err := r.Validate(); err != nil {
		b.Fail(err)
	}
	if uses := UsesRates(r); uses && rates == nil {
		b.Fail(errors.Errorf("optimizers: %s: %s: the table of rates must not be nil", name, r.Name()))
	} else if !uses && rates != nil {
		b.Fail(errors.Errorf("optimizers: %s: %s: the table of rates must be nil: the rule finds its own step size", name, r.Name()))
	}
	for step, rate := range b.TableValues(rates) {
		if !(rate >= 0 && rate <= math.MaxFloat32) {
			b.Fail(errors.Errorf("optimizers: %s: %s: the rate of step %d must be at least 0 and finite in float32, got %v", name, r.Name(), step, rate))
		}
	}
	inputs := []*graph.Node{parameter, gradient}
	for _, state := range r.states() {
		if b.Err() != nil {
			return nil
		}
		inputs = append(inputs, b.State(name+"."+state, nil, graph.ShapeOf(parameter)...))
	}
	if rates != nil {
		inputs = append(inputs, rates)
	}
	for i, n := range inputs {
		if n != nil && graph.DTypeOf(n) != b.DType() {
			b.Fail(errors.Errorf("optimizers: %s: %s: input %d must hold %v, got %v", name, r.Name(), i, b.DType(), graph.DTypeOf(n)))
		}
	}
	defer b.Scope(name)()
	return b.Apply(update{r}, append(inputs, b.Header())...)
}

// update is the op of a rule's step of one parameter: w, dw and the rule's states of w's shape,
// rates by step unless the rule has none, header -> statistics, see op.UpdateShape.
type update struct{ rule rule }

func (u update) Name() string { return u.rule.Name() + " update" }

func (u update) Updates() []int {
	changed := []int{0}
	for i := range u.rule.states() {
		changed = append(changed, 2+i)
	}
	return changed
}

func (u update) Shape(in []tensor.Shape) (tensor.Shape, error) {
	return op.UpdateShape(in, len(u.rule.states()), u.tables())
}

func (u update) tables() int {
	if UsesRates(u.rule) {
		return 1
	}
	return 0
}

func (u update) Lower(l *graph.Lowering) {
	n := l.Shapes[0].Elements()
	arguments := []tensor.Argument{l.Out(), l.InOut(0), l.In(1)}
	at := 2
	for range u.rule.states() {
		arguments = append(arguments, l.InOut(at))
		at++
	}
	for ; at < len(l.Shapes); at++ {
		arguments = append(arguments, l.In(at))
	}
	arguments = append(arguments, tensor.Int(n))
	if u.tables() > 0 {
		arguments = append(arguments, tensor.Int(l.Shapes[len(l.Shapes)-2][0]))
	}
	host, scalars := u.rule.lower(l, n)
	for _, v := range scalars {
		arguments = append(arguments, tensor.Float(tensor.Float64, v))
	}
	l.Emit(u.rule.Name()+"_update", op.UpdateGrid(n), host, arguments...)
}

// operands returns the parameters lo to hi and their gradients.
func operands[T float32 | float64](a *tensor.Args, lo, hi int) (w, dw []T) {
	return tensor.Slice[T](a, 1)[lo:hi], tensor.Slice[T](a, 2)[lo:hi]
}

// rateAt returns the learning rate of the step. rates is the position of the table among the
// launch's arguments; the header follows it.
func rateAt[T float32 | float64](a *tensor.Args, rates int) T {
	return op.Entry(tensor.Slice[T](a, rates), tensor.Slice[uint64](a, rates+1))
}
