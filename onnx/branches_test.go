package onnx

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// ifOf are nodes that compare an extent of x with a number, and apply one of two graphs.
func ifOf(axis, number int, then, otherwise graphOf) [][]byte {
	return [][]byte{
		nodeOf("Shape", []string{"x"}, []string{"s"}, map[string]any{"start": axis, "end": axis + 1}),
		nodeOf("Constant", nil, []string{"n"}, map[string]any{"value": integersOf("", number)}),
		nodeOf("Equal", []string{"s", "n"}, []string{"c"}, nil),
		nodeOf("If", []string{"c"}, []string{"y"}, map[string]any{"then_branch": then, "else_branch": otherwise}),
	}
}

// branchOf is a graph of a branch that returns one value.
func branchOf(output string, nodes ...[]byte) graphOf {
	return graphOf{nodes: nodes, outputs: [][]byte{valueOf(output)}}
}

func TestBranches(t *testing.T) {
	squeezed := branchOf("t",
		nodeOf("Constant", nil, []string{"a"}, map[string]any{"value": integersOf("", 1)}), nodeOf("Squeeze", []string{"x", "a"}, []string{"t"}, nil))
	same, unknown := branchOf("t", nodeOf("Identity", []string{"x"}, []string{"t"}, nil)), branchOf("t", nodeOf("NonZero", []string{"x"}, []string{"t"}, nil))
	withTensor := branchOf("t", nodeOf("Add", []string{"x", "w"}, []string{"t"}, nil))
	withTensor.tensors = [][]byte{tensorOf("w", []int{1}, 10)}
	for name, row := range map[string]struct {
		nodes [][]byte
		batch int // that the model declares
		shape []int
		want  string
	}{
		"the first":            {ifOf(1, 1, squeezed, same), -1, []int{2, 1, 1}, "[2 1] [1 2]"},
		"the second":           {ifOf(1, 2, squeezed, same), -1, []int{2, 1, 1}, "[2 1 1] [1 2]"},
		"unsupported operator": {ifOf(1, 1, same, unknown), -1, []int{2, 1, 1}, "[2 1 1] [1 2]"},
		"fixed batch":          {ifOf(1, 1, squeezed, same), 1, []int{2, 1, 1}, "[2 1] [1 2]"},
		"an outer value":       {ifOf(1, 1, branchOf("x"), unknown), -1, []int{2, 1, 1}, "[2 1 1] [1 2]"},
		"a tensor":             {ifOf(1, 1, withTensor, unknown), -1, []int{2, 1, 1}, "[2 1 1] [11 12]"},
		"one in another": {ifOf(1, 1, branchOf("u", ifOf(2, 1, branchOf("t", nodeOf("Neg", []string{"n2"}, []string{"t"}, nil)), unknown)[3],
			nodeOf("Sum", []string{"y"}, []string{"u"}, nil)), unknown), -1, []int{2, 1, 1}, "[2 1 1] [-2 -4]"},
	} {
		t.Run(name, func(t *testing.T) {
			doubled := nodeOf("Add", []string{"x", "x"}, []string{"n2"}, nil)
			m, err := Read(modelOf(15, graphOf{nodes: append([][]byte{doubled}, row.nodes...),
				inputs: [][]byte{valueOf("x", row.batch, -1, -1)}, outputs: [][]byte{valueOf("y")}}), nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := evaluate(m, "y", &storedTensor{Type: Float32, Shape: row.shape, floats: []float64{1, 2}})
			if err != nil {
				t.Fatal(err)
			}
			if text := fmt.Sprint(got.shape, got.values); text != row.want {
				t.Errorf("y is %s, want %s", text, row.want)
			}
		})
	}
}

// A convolution in a branch has its weights, and a batch normalisation after the If becomes part of
// it.
func TestConvolutionInABranch(t *testing.T) {
	convolution := branchOf("c", nodeOf("Conv", []string{"x", "w"}, []string{"c"}, nil))
	nodes := ifOf(1, 1, convolution, branchOf("x"))
	nodes[3] = nodeOf("If", []string{"c"}, []string{"z"}, map[string]any{"then_branch": convolution, "else_branch": branchOf("x")})
	m, err := Read(modelOf(15, graphOf{
		nodes: append(nodes, nodeOf("BatchNormalization", []string{"z", "scale", "shift", "mean", "var"}, []string{"y"}, map[string]any{"epsilon": 0.0})),
		tensors: [][]byte{tensorOf("w", []int{1, 1, 1, 1}, 3), tensorOf("scale", []int{1}, 1), tensorOf("shift", []int{1}, 1),
			tensorOf("mean", []int{1}, 0), tensorOf("var", []int{1}, 4)},
		inputs: [][]byte{valueOf("x", -1, 1, 2, 2)}, outputs: [][]byte{valueOf("y")},
	}), nil)
	if err != nil {
		t.Fatal(err)
	}
	n, err := m.Network(Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := n.Weights(); !slices.Contains(got, "w") {
		t.Errorf("weights are %v, want w among them", got)
	}
	got, err := n.evaluate("y", &storedTensor{Type: Float32, Shape: []int{1, 1, 2, 2}, floats: []float64{0, 2, 4, 6}})
	if err != nil {
		t.Fatal(err)
	}
	if want := []float64{1, 4, 7, 10}; !slices.Equal(got.values, want) {
		t.Errorf("y is %v, want %v", got.values, want)
	}
	b := graph.New(tensor.Float32)
	b.Output("y", n.Apply(b, b.Data("images", tensor.Float32, 1, 1, 2, 2)))
	p, err := b.Compile()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(p.Dump(), "my BatchNormalization: conv2d + bias") {
		t.Errorf("the normalization must be part of the convolution:\n%s", p.Dump())
	}
}

func TestBranchErrors(t *testing.T) {
	same, unknown := branchOf("x"), branchOf("t", nodeOf("NonZero", []string{"x"}, []string{"t"}, nil))
	positive := ifOf(0, 1, same, same)
	positive[2] = nodeOf("Greater", []string{"x", "n"}, []string{"c"}, nil)
	nested := same
	for range 101 {
		nested = branchOf("y", ifOf(1, 1, nested, same)...)
	}
	two := ifOf(1, 1, same, same)
	two[2] = nodeOf("Equal", []string{"w", "n"}, []string{"c"}, nil)
	made := branchOf("t", nodeOf("Neg", []string{"x"}, []string{"t"}, nil), nodeOf("Abs", []string{"x"}, []string{"t"}, nil))
	for name, row := range map[string]struct {
		nodes [][]byte
		want  string
	}{
		"of the input":    {positive, "node my If (If): the condition c depends on the values of the input, not only on its shape: export the model by tracing"},
		"of the batch":    {ifOf(0, 1, same, unknown), "node my If (If): the branch that is taken must not depend on the size of the batch: export the model"},
		"the second":      {ifOf(1, 1, same, unknown), "operators that are not supported: NonZero in node my NonZero (NonZero)"},
		"no graph":        {[][]byte{nodeOf("If", []string{"c"}, []string{"y"}, map[string]any{"then_branch": same})}, "attribute else_branch must be a graph"},
		"outputs":         {ifOf(1, 1, graphOf{}, same), "then_branch must have 1 outputs as the node, got 0"},
		"deep":            {ifOf(1, 1, nested, same), "branches must contain at most 100 others"},
		"made twice":      {ifOf(1, 1, made, same), `node my If (If): two of its nodes make the value "t"`},
		"unknown value":   {ifOf(1, 1, branchOf("z"), same), `no node makes the value "z"`},
		"two conditions":  {two, "the condition must be a single value, got shape [2]"},
		"condition later": {slices.Concat(ifOf(1, 1, same, same)[3:], ifOf(1, 1, same, same)[:3]), `input "c" is not made by an earlier node`},
		"a loop":          {[][]byte{nodeOf("Loop", []string{"", "", "x"}, []string{"y"}, nil)}, "Loop in node my Loop (Loop) (a loop: export"},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := Read(modelOf(15, graphOf{nodes: row.nodes, tensors: [][]byte{integersOf("w", 1, 2)},
				inputs: [][]byte{valueOf("x", -1, 2)}, outputs: [][]byte{valueOf("y")}}), nil)
			if err == nil {
				_, err = evaluate(m, "y", &storedTensor{Type: Float32, Shape: []int{1, 2}, floats: []float64{1, 2}})
			}
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("error is %.300v, want it to have %q", err, row.want)
			}
		})
	}
}
