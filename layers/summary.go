package layers

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// Summary lists the layers of a network with their parameters and floating-point operations.
type Summary struct {
	Rows       []Row // one for each layer, in the order of their first ops
	Parameters int   // of all rows
	Flops      int   // of all rows
}

// Row describes a layer.
type Row struct {
	Name       string       // of the layer, or of the op if it belongs to no layer
	Kind       string       // the names of its ops
	Output     tensor.Shape // for one example
	Parameters int
	Flops      int // forward, for one example: 2 per multiply-add of convolutions and matmuls only
}

// Summarize returns the summary of a network for examples of the given shape, [C H W] for images.
func Summarize(network Layer, input tensor.Shape) (Summary, error) {
	b, _, err := applied(network, input)
	if err != nil {
		return Summary{}, err
	}
	size := map[*graph.Node]int{}
	for _, parameter := range b.Parameters() {
		size[parameter] = graph.ShapeOf(parameter).Elements()
	}
	var s Summary
	place := map[string]int{}
	for _, a := range b.Applications() {
		name := scopeOf(a)
		i, ok := place[name]
		if !ok {
			i = len(s.Rows)
			place[name] = i
			s.Rows = append(s.Rows, Row{Name: name})
		}
		s.Rows[i].add(a, size)
	}
	for _, row := range s.Rows {
		s.Parameters += row.Parameters
		s.Flops += row.Flops
	}
	return s, nil
}

// add adds an op to its layer's row. It removes the parameters that it counts from size, so that
// shared ones are counted once.
func (r *Row) add(a graph.Application, size map[*graph.Node]int) {
	if r.Kind != "" {
		r.Kind += " + "
	}
	r.Kind += a.Op.Name()
	if shape := graph.ShapeOf(a.Output); len(shape) > 0 {
		r.Output = shape[1:]
	}
	for _, in := range a.Inputs {
		r.Parameters += size[in]
		delete(size, in)
	}
	r.Flops += flops(a)
}

// flops returns the floating-point operations of an op, two for each multiply-add.
func flops(a graph.Application) int {
	switch o := a.Op.(type) {
	case op.Conv2D, op.GroupedConv2D:
		weight := graph.ShapeOf(a.Inputs[1])
		return 2 * graph.ShapeOf(a.Output).Elements() * weight[1:].Elements()
	case op.MatMul:
		return productFlops(a, o.TransposeA)
	case op.BatchMatMul:
		return productFlops(a, o.TransposeA)
	}
	return 0
}

// productFlops returns flops of a product of matrices, or of several.
func productFlops(a graph.Application, transposed bool) int {
	x := graph.ShapeOf(a.Inputs[0])
	inner := x[len(x)-1]
	if transposed {
		inner = x[len(x)-2]
	}
	return 2 * graph.ShapeOf(a.Output).Elements() * inner
}

// String returns a table with a line for each row and one for the totals.
func (s Summary) String() string {
	lines := [][]string{{"layer", "kind", "output", "parameters", "flops"}}
	for _, r := range s.Rows {
		lines = append(lines, []string{r.Name, r.Kind, r.Output.String(), groupDigits(r.Parameters), groupDigits(r.Flops)})
	}
	lines = append(lines, []string{"total", "", "", groupDigits(s.Parameters), groupDigits(s.Flops)})
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], len(cell))
		}
	}
	var text strings.Builder
	for _, line := range lines {
		fmt.Fprintf(&text, "%-*s  %-*s  %-*s  %*s  %*s\n",
			widths[0], line[0], widths[1], line[1], widths[2], line[2], widths[3], line[3], widths[4], line[4])
	}
	return text.String()
}

// groupDigits returns a number as text in groups of three digits: "909 770".
func groupDigits(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + " " + digits[i:]
	}
	return digits
}
