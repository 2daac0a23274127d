package layers

import (
	"fmt"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
)

// Average is the mean of the outputs of several copies of a network. The copies have the same
// input but separate parameters, such as "copy1.conv1.weight" and "copy2.conv1.weight". The body
// must not contain another Average.
type Average struct {
	Copies int
	Body   Sequential
}

// maxCopies bounds Copies, since each copy adds its layers to the graph.
const maxCopies = 100

// Apply implements Layer.
func (a Average) Apply(b *graph.Builder, x *graph.Node) *graph.Node {
	name, leave := enter(b, "", "average")
	defer leave()
	if !checkLimits(b, name, a) {
		return nil
	}
	var sum *graph.Node
	for range a.Copies {
		y := a.copy(b, x)
		if b.Err() != nil {
			return nil
		}
		if sum == nil {
			sum = y
		} else {
			sum = b.Apply(op.Add{}, sum, y)
		}
	}
	return b.Apply(op.Scale{Factor: 1 / float64(a.Copies)}, sum)
}

// copy applies one copy of the body.
func (a Average) copy(b *graph.Builder, x *graph.Node) *graph.Node {
	defer b.Prefix(CopyPrefix(b.Number("copy")))()
	y := a.Body.Apply(b, x)
	if b.Err() == nil && y == nil {
		b.Fail(errors.New("layers: average: the body has no output"))
	}
	return y
}

// CopyPrefix returns the prefix of the names of the parameters of copy number 1, 2, ... of a graph.
func CopyPrefix(number int) string { return fmt.Sprintf("copy%d.", number) }

func (a Average) limits() []limit {
	l := atLeast("Copies", a.Copies, 1)
	l.below = maxCopies + 1
	return []limit{l}
}
