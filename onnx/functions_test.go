package onnx

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// affine is a function y = scale x + shift, with a scale of 2 unless a call gives it. Its second
// output is -x.
func affine() []byte {
	f := functionOf("Affine", 13, []string{"x", "shift"}, []string{"y", "negative"},
		nodeOf("Constant", nil, []string{"s"}, map[string]any{"value_float": reference("scale")}),
		nodeOf("Mul", []string{"x", "s"}, []string{"t"}, nil),
		nodeOf("Sum", []string{"t", "shift"}, []string{"y"}, nil),
		nodeOf("Neg", []string{"x"}, []string{"negative"}, nil))
	return append(f, message(11, text(1, "scale"), float(2, 2))...)
}

// TestCalls applies functions of a model to x = [1 -3].
func TestCalls(t *testing.T) {
	calls := func(nodes ...[]byte) graphOf {
		return graphOf{nodes: nodes, tensors: [][]byte{tensorOf("c", []int{2}, 10, 20)}, inputs: [][]byte{valueOf("x", -1, 2)}, outputs: [][]byte{valueOf("y")}}
	}
	x, y := []string{"x"}, []string{"y"}
	shifted := functionOf("Shifted", 13, x, y,
		callOf("Affine", []string{"x", "x"}, []string{"t"}, map[string]any{"scale": reference("by")}),
		callOf("Affine", []string{"t", "x"}, []string{"y"}, nil))
	clipped := functionOf("Clipped", 13, []string{"x", "low", "high"}, y, nodeOf("Clip", []string{"x", "low", "high"}, y, nil))
	one := graphOf{nodes: [][]byte{nodeOf("Identity", x, []string{"t"}, nil)}, outputs: [][]byte{valueOf("t")}}
	two := graphOf{nodes: [][]byte{nodeOf("Neg", x, []string{"t"}, nil)}, outputs: [][]byte{valueOf("t")}}
	negated := functionOf("Negated", 13, x, y,
		nodeOf("Constant", nil, []string{"c"}, map[string]any{"value": tensorWith("", Bool, nil, message(5, []byte{0}))}),
		nodeOf("If", []string{"c"}, y, map[string]any{"then_branch": one, "else_branch": two}))
	other := append(functionOf("Affine", 13, []string{"a", "b"}, y, nodeOf("Sub", []string{"a", "b"}, y, nil)), text(13, "other")...)
	own := func(name string) []byte {
		return slices.Concat(text(1, name), text(4, "x"), text(5, "y"), message(7, nodeOf("Neg", x, y, nil)), message(9, whole(2, 13)))
	}
	for name, row := range map[string]struct {
		graph     graphOf
		functions [][]byte
		want      []float64
	}{
		"default of an attribute": {calls(callOf("Affine", []string{"x", "c"}, y, nil)), [][]byte{affine()}, []float64{12, 14}},
		"attribute of the call":   {calls(callOf("Affine", []string{"x", "c"}, y, map[string]any{"scale": 3.0})), [][]byte{affine()}, []float64{13, 11}},
		"second output":           {calls(callOf("Affine", []string{"x", "c"}, []string{"", "y"}, nil)), [][]byte{affine()}, []float64{-1, 3}},
		"names that the model has": {calls(callOf("Affine", []string{"x", "c"}, []string{"t", "s"}, nil), nodeOf("Add", []string{"t", "s"}, y, nil)),
			[][]byte{affine()}, []float64{11, 17}},
		"input left out": {calls(callOf("Clipped", []string{"x", "", "c"}, y, nil)),
			[][]byte{functionOf("Clipped", 13, []string{"x", "low", "high"}, y, nodeOf("Min", []string{"x", "high"}, y, nil))}, []float64{1, -3}},
		"optional input":         {calls(callOf("Clipped", []string{"x"}, y, nil)), [][]byte{clipped}, []float64{1, -3}},
		"functions in functions": {calls(callOf("Shifted", x, y, map[string]any{"by": 3.0})), [][]byte{affine(), shifted}, []float64{9, -27}},
		"called twice": {calls(callOf("Affine", []string{"x", "c"}, []string{"a"}, nil), callOf("Affine", []string{"a", "x"}, y, nil)),
			[][]byte{affine()}, []float64{25, 25}},
		"returns an input": {calls(callOf("Same", x, []string{"a", "b"}, nil), nodeOf("Add", []string{"a", "b"}, y, nil)),
			[][]byte{functionOf("Same", 13, x, []string{"x", "x"})}, []float64{2, -6}},
		"returns a value twice": {calls(callOf("Twice", x, []string{"a", "b"}, nil), nodeOf("Add", []string{"a", "b"}, y, nil)),
			[][]byte{functionOf("Twice", 13, x, []string{"t", "t"}, nodeOf("Neg", x, []string{"t"}, nil))}, []float64{-2, 6}},
		"branches":            {calls(callOf("Negated", x, y, nil)), [][]byte{negated}, []float64{-1, 3}},
		"name of an operator": {calls(nodeOf("Relu", x, y, nil)), [][]byte{own("Relu")}, []float64{1, 0}},
		"name of an operator without translation": {calls(nodeOf("NonZero", x, y, nil)), [][]byte{own("NonZero")}, []float64{-1, 3}},
		"its own opset": {calls(callOf("Rows", []string{"c"}, []string{"r"}, nil), nodeOf("Mul", []string{"x", "r"}, y, nil)),
			[][]byte{functionOf("Rows", 6, []string{"a"}, []string{"b"}, nodeOf("PRelu", []string{"a", "a"}, []string{"b"}, nil))}, []float64{10, -60}},
		"overload": {calls(append(callOf("Affine", []string{"x", "c"}, y, nil), text(8, "other")...)),
			[][]byte{affine(), other}, []float64{-9, -23}},
		"functions that nobody uses": {calls(nodeOf("Neg", x, y, nil)),
			[][]byte{functionOf("Broken", 13, nil, y, nodeOf("Neg", []string{"z"}, y, nil))}, []float64{-1, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := Read(modelOf(13, row.graph, row.functions...), nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := evaluate(m, "y", &storedTensor{Type: Float32, Shape: []int{1, 2}, floats: []float64{1, -3}})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.values, row.want) {
				t.Errorf("y is %v, want %v", got.values, row.want)
			}
		})
	}
}

// Each node has the operators' version of its function: until opset 12, Softmax took all axes from
// the given one on as a row.
func TestOpsetOfAFunction(t *testing.T) {
	for opset, want := range map[int]float64{12: 0.25, 13: 0.5} {
		f := functionOf("Rows", opset, []string{"x"}, []string{"y"}, nodeOf("Softmax", []string{"x"}, []string{"y"}, map[string]any{"axis": 1}))
		m, err := Read(modelOf(13, graphOf{nodes: [][]byte{callOf("Rows", []string{"x"}, []string{"y"}, nil)},
			inputs: [][]byte{valueOf("x", -1, 2, 2)}, outputs: [][]byte{valueOf("y")}}, f), nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := evaluate(m, "y", &storedTensor{Type: Float32, Shape: []int{1, 2, 2}, floats: make([]float64, 4)})
		if err != nil {
			t.Fatal(err)
		}
		if got.values[0] != want {
			t.Errorf("opset %d: y is %v, want %v", opset, got.values, want)
		}
	}
}

// A weight keeps its name in a function, and a network may be cut at a value of one, or at a call.
func TestPartsOfAFunction(t *testing.T) {
	f := functionOf("Head", 13, []string{"x", "w"}, []string{"y"},
		nodeOf("Relu", []string{"x"}, []string{"t"}, nil), nodeOf("Gemm", []string{"t", "w"}, []string{"y"}, nil))
	m, err := Read(modelOf(13, graphOf{nodes: [][]byte{callOf("Head", []string{"x", "fc"}, []string{"logits"}, nil)},
		tensors: [][]byte{tensorOf("fc", []int{2, 1}, 1, 2)}, inputs: [][]byte{valueOf("x", -1, 2)}, outputs: [][]byte{valueOf("logits")}}, f), nil)
	if err != nil {
		t.Fatal(err)
	}
	n, err := m.Network(Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(n.Weights(), n.FanIns()); got != "[fc] map[fc:2]" {
		t.Errorf("weights and fan-ins are %s", got)
	}
	if got, err := m.Features(); got != "my Head/t" || err != nil {
		t.Errorf("features are %q, %v", got, err)
	}
	for name, want := range map[string]string{"my Head": "logits", "my Head/my Relu": "my Head/t", "my Head/t": "my Head/t"} {
		if got, err := m.Value(name); got != want || err != nil {
			t.Errorf("value of %q is %q, %v, want %q", name, got, err, want)
		}
	}
}

func TestCallErrors(t *testing.T) {
	x, y := []string{"x"}, []string{"y"}
	call := func(name string) []byte { return callOf(name, x, y, nil) }
	chain := func(n, calls int) (functions [][]byte) { // F0 calls F1, which calls F2, and so on
		for i := range n {
			f := functionOf(fmt.Sprint("F", i), 13, x, y)
			for k := range calls {
				f = append(f, message(7, callOf(fmt.Sprint("F", i+1), x, []string{[]string{"y", "z"}[k]}, nil))...)
			}
			functions = append(functions, f)
		}
		return append(functions, functionOf(fmt.Sprint("F", n), 13, x, y, nodeOf("Neg", x, y, nil)))
	}
	typed := functionOf("F0", 13, x, y, append(nodeOf("Elu", x, y, nil), message(5, text(1, "alpha"), whole(20, 1), text(21, "alpha"))...))
	cycle := append(chain(2, 1)[:2], functionOf("F2", 13, x, y, call("F0")))
	name := strings.Repeat("long", 1<<16)
	long := append(chain(16, 2)[:16], functionOf("F16", 13, x, y, nodeOf("Neg", x, []string{name}, nil), nodeOf("Neg", []string{name}, y, nil)))
	model := graphOf{inputs: [][]byte{valueOf("x", -1, 2)}, outputs: [][]byte{valueOf("y")}}
	for name, row := range map[string]struct {
		node      []byte
		functions [][]byte
		want      string
	}{
		"itself": {call("F0"),
			[][]byte{functionOf("F0", 13, x, y, call("F0"))}, "node my F0/my F0 (F0): function own.F0 must not call itself, directly or through others"},
		"a cycle": {call("F0"), cycle, "node my F0/my F1/my F2/my F0 (F0): function own.F0 must not call itself"},
		"many":    {call("F0"), chain(60, 2), "functions and branches must have at most 262144 nodes and 128 MiB once they are inlined"},
		"deep":    {call("F0"), chain(1000, 1), "at most 100 functions may call each other"},
		"long":    {call("F0"), long, "128 MiB"},
		"inputs":  {callOf("F0", []string{"x", "x"}, y, nil), chain(0, 0), "node my F0 (F0): function own.F0 has 1 inputs and 1 outputs, the call has 2 and 1"},
		"unknown value": {call("F0"),
			[][]byte{functionOf("F0", 13, x, y, nodeOf("Neg", []string{"z"}, y, nil))}, `node my F0/my Neg (Neg): the function has no input and no earlier value "z"`},
		"a value of others": {call("F0"),
			[][]byte{functionOf("F0", 13, []string{"a"}, y, nodeOf("Neg", x, y, nil))}, `the function has no input and no earlier value "x"`},
		"no output": {call("F0"),
			[][]byte{functionOf("F0", 13, x, y)}, `node my F0 (F0): output 0: the function has no input and no earlier value "y"`},
		"made twice": {call("F0"),
			[][]byte{functionOf("F0", 13, x, y, nodeOf("Neg", x, y, nil), nodeOf("Abs", x, y, nil))}, `node my F0 (F0): two of its nodes make the value "y"`},
		"an input made": {call("F0"),
			[][]byte{functionOf("F0", 13, x, y, nodeOf("Neg", x, x, nil), nodeOf("Neg", x, y, nil))}, `node my F0/my Neg (Neg): the value "x" is already an input`},
		"two of a name": {call("F0"), slices.Concat(chain(0, 0), chain(0, 0)), "function own.F0: the model must have one function of the name, got two"},
		"no function":   {call("F0"), nil, "own.F0 in node my F0 (F0)"},
		"type of attribute": {append(call("F0"), message(5, text(1, "alpha"), whole(20, 2), whole(3, 1))...),
			[][]byte{typed}, "node my F0/my Elu (Elu): attribute alpha must have type 1, as in the function, got 2"},
		"reference": {nodeOf("Elu", x, y, map[string]any{"alpha": reference("alpha")}), nil, "attribute alpha refers to an attribute of a function, outside"},
		"no opset": {call("F0"),
			[][]byte{functionOf("F0", 0, x, y, nodeOf("Neg", x, y, nil))}, "node my F0/my Neg (Neg): opset must be at least 6, got 0"},
		"operator": {call("F0"), [][]byte{functionOf("F0", 13, x, y, nodeOf("NonZero", x, y, nil))}, "NonZero in node my F0/my NonZero (NonZero)"},
		"translation": {call("F0"),
			[][]byte{functionOf("F0", 13, x, y, nodeOf("Gemm", x, y, nil))}, "node my F0/my Gemm (Gemm): must have at least 2 inputs, got 1"},
	} {
		t.Run(name, func(t *testing.T) {
			g := model
			g.nodes = [][]byte{row.node}
			m, err := Read(modelOf(13, g, row.functions...), nil)
			if err == nil {
				_, err = evaluate(m, "y", &storedTensor{Type: Float32, Shape: []int{1, 2}, floats: []float64{1, 2}})
			}
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("error is %.300v, want it to have %q", err, row.want)
			}
		})
	}
}
