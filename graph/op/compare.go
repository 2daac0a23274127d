package op

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// Relation is a comparison of two numbers; the greater ones are those of exchanged operands.
type Relation uint8

// The relations.
const (
	Less Relation = iota
	LessOrEqual
	Equal
	NotEqual
	relations
)

// relationNames are the names of the relations' kernels.
var relationNames = [relations]string{"less", "less_equal", "equal", "not_equal"}

// Compare is y = 1 where a and b are in the Relation, else 0, elementwise with NumPy's
// broadcasting: a [...], b [...] -> y. It has no gradient. Adopted networks use it.
type Compare struct {
	Relation Relation
}

// Name implements graph.Op.
func (Compare) Name() string { return "compare" }

// Shape implements graph.Op.
func (c Compare) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if c.Relation >= relations {
		return nil, errors.Errorf("relation is %d, wants Less, LessOrEqual, Equal or NotEqual", c.Relation)
	}
	return broadcast(in)
}

// Lower implements graph.Op.
func (c Compare) Lower(l *graph.Lowering) {
	lowerArithmetic(l, relationNames[c.Relation], comparison[float32](c.Relation), comparison[float64](c.Relation))
}

func comparison[T float32 | float64](r Relation) func(y, a, b []T) {
	holds := [relations]func(a, b T) bool{
		Less:        func(a, b T) bool { return a < b },
		LessOrEqual: func(a, b T) bool { return a <= b },
		Equal:       func(a, b T) bool { return a == b },
		NotEqual:    func(a, b T) bool { return a != b },
	}[r]
	return func(y, a, b []T) {
		for i := range y {
			y[i] = 0
			if holds(a[i], b[i]) {
				y[i] = 1
			}
		}
	}
}
