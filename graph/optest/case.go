package optest

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// Case is a row of the suite.
type Case struct {
	Name string

	// Op is applied to Inputs. Build, if set, makes a small graph of them instead, to test the
	// compiler's fusions. If Kernel is set, the output must be computed by one launch of that
	// name, without its type's suffix.
	Op     graph.Op
	Build  func(b *graph.Builder, in []*graph.Node) *graph.Node
	Kernel string
	Inputs []Input

	// Naive returns the output, by the shortest loop over float64. Inputs that Op updates must be
	// updated by Naive, too.
	Naive func(in [][]float64) []float64
	// Terms is the number of terms in the sum behind an output element. It sets the tolerance.
	Terms int
	// Loosen multiplies the tolerance; Reason explains why.
	Loosen float64
	Reason string

	// Steps is the number of steps to compare, for ops that read the header or update; 0 means 1.
	Steps int
	// NoGradient skips the test of gradients. It must be set for ops without a gradient.
	NoGradient bool
	// Gradient, if set, replaces finite differences, for inputs at kinks. It returns the gradients
	// of the float inputs in order.
	Gradient func(in [][]float64, dout []float64) [][]float64

	// Speed makes Benchmark measure the row, which should be large. Run then skips finite
	// differences, and tests only float32. Flops is the number of floating-point operations of the
	// output.
	Speed bool
	Flops float64

	drawn map[string][]float64 // values that draw has returned so far
}

// Input is an input of a row. If DType is 0 it is of the program's float type, with other values in
// each chain.
type Input struct {
	Shape tensor.Shape
	DType tensor.DType
	Fill  Fill
}

// Header is the input through which an op takes the graph's header.
var Header = Input{Shape: tensor.Shape{3}, DType: tensor.Uint64}

// Float returns an input of the program's float type.
func Float(fill Fill, shape ...int) Input { return Input{Shape: shape, Fill: fill} }

// Labels returns an input of class numbers, int32, below classes.
func Labels(classes int, shape ...int) Input {
	return Input{Shape: shape, DType: tensor.Int32, Fill: Below(classes)}
}

// Bytes returns an input of uint8 below bound, which must be at most 256.
func Bytes(bound int, shape ...int) Input {
	return Input{Shape: shape, DType: tensor.Uint8, Fill: Below(bound)}
}

func (in Input) isFloat() bool  { return in.DType == 0 }
func (in Input) isHeader() bool { return in.DType == tensor.Uint64 }

// Fill draws an input's values.
type Fill func(r *rand.Rand, values []float64)

// Normal draws from the standard normal distribution.
func Normal(r *rand.Rand, values []float64) {
	for i := range values {
		values[i] = r.NormFloat64()
	}
}

// Large draws from a normal distribution of standard deviation 100, whose exponentials overflow.
func Large(r *rand.Rand, values []float64) {
	for i := range values {
		values[i] = 100 * r.NormFloat64()
	}
}

// Uniform draws from (0, 1).
func Uniform(r *rand.Rand, values []float64) {
	for i := range values {
		values[i] = 0x1p-24 + (1-0x1p-23)*r.Float64()
	}
}

// Positive draws from [1/2, 2).
func Positive(r *rand.Rand, values []float64) {
	for i := range values {
		values[i] = 0.5 + 1.5*r.Float64()
	}
}

// Distinct returns evenly spaced values in (-2, 2), in random order: no two are close to each
// other, and none is close to 0, for ops that have kinks there. Finite differences are safe up to
// 10000 elements.
func Distinct(r *rand.Rand, values []float64) {
	n := len(values)
	for i, place := range r.Perm(n) {
		values[i] = (2*float64(place) + 1.5 - float64(n)) * 2 / float64(n)
	}
}

// DistinctWide is Distinct in (-4.4, 4.4), where none of up to 10000 elements is close to -3 or 3,
// the kinks of HardSwish.
func DistinctWide(r *rand.Rand, values []float64) {
	Distinct(r, values)
	for i := range values {
		values[i] *= 2.2
	}
}

// Ties draws from the integers -2 to 2: many are equal, and many are 0.
func Ties(r *rand.Rand, values []float64) {
	for i := range values {
		values[i] = float64(r.IntN(5) - 2)
	}
}

// Below draws from the integers 0 to bound-1.
func Below(bound int) Fill {
	return func(r *rand.Rand, values []float64) {
		for i := range values {
			values[i] = float64(r.IntN(bound))
		}
	}
}

// The seed in the headers of all sessions of the suite.
const seed = 0x5eed_0123_4567

// values returns the inputs of a chain, exact in float32, for the caller to change. Inputs that are
// not floats are the same for all chains.
func (c *Case) values(chain int) [][]float64 {
	var all [][]float64
	for i, in := range c.Inputs {
		if in.isHeader() {
			all = append(all, []float64{seed, float64(chain), 0})
			continue
		}
		number := chain
		if !in.isFloat() {
			number = 0
		}
		all = append(all, append([]float64(nil), c.draw(fmt.Sprint("input ", i), number, in.Shape, in.Fill)...))
	}
	return all
}

// draw returns the same values whenever it is called with the same arguments. The caller must not
// change them.
func (c *Case) draw(what string, chain int, shape tensor.Shape, fill Fill) []float64 {
	key := fmt.Sprintf("%s, %s, chain %d", c.Name, what, chain)
	if values, ok := c.drawn[key]; ok {
		return values
	}
	h := fnv.New64a()
	h.Write([]byte(key))
	values := make([]float64, shape.Elements())
	fill(rand.New(rand.NewPCG(h.Sum64(), 0)), values)
	for i, v := range values {
		values[i] = float64(float32(v))
	}
	if c.drawn == nil {
		c.drawn = map[string][]float64{}
	}
	c.drawn[key] = values
	return values
}

func (c *Case) steps() int { return max(1, c.Steps) }

// updates returns the inputs that the op changes.
func (c *Case) updates() []int {
	if u, ok := c.Op.(graph.Updater); ok && c.Build == nil {
		return u.Updates()
	}
	return nil
}

// tol returns the tolerance of the output.
func (c *Case) tol(dtype tensor.DType, terms int, want []float64) Tol {
	tol := SumTol(dtype, terms, want)
	if c.Loosen > 0 {
		tol.Abs *= c.Loosen
		tol.Rel *= c.Loosen
	}
	return tol
}

// validate returns an error for a row that would test less than it seems to.
func (c *Case) validate() error {
	switch {
	case c.Name == "" || c.Op == nil && c.Build == nil || c.Naive == nil || c.Terms < 1:
		return errors.Errorf("optest: row %q: it must have a name, an op or a graph, a naive loop, and Terms of at least 1", c.Name)
	case (c.Loosen != 0) != (c.Reason != ""):
		return errors.Errorf("optest: row %q: Loosen and Reason must be set together", c.Name)
	case c.Speed && !(c.Flops > 0):
		return errors.Errorf("optest: row %q: Flops must be set with Speed", c.Name)
	}
	for i, in := range c.Inputs {
		switch in.DType {
		case 0, tensor.Int32, tensor.Uint8, Header.DType:
		default:
			return errors.Errorf("optest: row %q: input %d must be of the program's float, int32, uint8, or the Header, got %v", c.Name, i, in.DType)
		}
	}
	if _, ok := c.Op.(graph.Differentiable); c.Build == nil && !ok && !c.NoGradient {
		return errors.Errorf("optest: row %q: NoGradient must be set: %s has no gradient", c.Name, c.Op.Name())
	}
	return nil
}
