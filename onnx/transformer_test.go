package onnx

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// What transformers repeat in each block takes few launches: a layer normalization and a GELU one
// each, and a bias none besides the product before it.
func TestTransformerLaunches(t *testing.T) {
	node := func(op, y string, inputs ...string) []byte { return nodeOf(op, inputs, []string{y}, nil) }
	gelu := func(x float64) float64 { return x * (1 + math.Erf(x/math.Sqrt2)) / 2 }
	x := []float64{-3, -1, -0.5, 0, 0.5, 1, 2, 3}
	var gelus, normalized, doubled, affine, silus, swishes []float64
	for i, v := range x {
		gelus = append(gelus, gelu(v))
		affine, silus = append(affine, 1-v/2), append(silus, v/(1+math.Exp(-v)))
		swishes = append(swishes, v*min(max(v/6+0.5, 0), 1))
		row := x[i/2*2:][:2]
		mean := (row[0] + row[1]) / 2
		variance := (row[0] - mean) * (row[0] - mean)
		normalized = append(normalized, (v-mean)/math.Sqrt(variance+1e-5)*float64(2+i%2)+float64(i%2))
		doubled = append(doubled, 2*v+float64(10+i%2))
	}
	erf := [][]byte{node("Div", "z", "x", "root"), node("Erf", "e", "z"), node("Add", "f", "e", "one")}
	for name, c := range map[string]struct {
		nodes    [][]byte
		want     []float64
		launches []string
	}{
		"GELU of PyTorch": {append(slices.Clone(erf), node("Mul", "g", "x", "f"), node("Mul", "y", "g", "half")), gelus, []string{"gelu_fwd_f32"}},
		"GELU of Keras":   {append(slices.Clone(erf), node("Mul", "g", "half", "x"), node("Mul", "y", "g", "f")), gelus, []string{"gelu_fwd_f32"}},
		"GELU, its factors in another order": {
			append(slices.Clone(erf), node("Mul", "g", "f", "half"), node("Mul", "y", "x", "g")), gelus, []string{"gelu_fwd_f32"},
		},
		"GELU with a product": {[][]byte{node("Mul", "z", "inverse", "x"), node("Erf", "e", "z"), node("Add", "f", "one", "e"),
			node("Mul", "g", "x", "f"), node("Mul", "y", "g", "half")}, gelus, []string{"gelu_fwd_f32"}},
		"SiLU": {[][]byte{node("Sigmoid", "s", "x"), node("Mul", "y", "s", "x")}, silus, []string{"silu_fwd_f32"}},
		"hard swish": {[][]byte{nodeOf("HardSigmoid", []string{"x"}, []string{"s"}, map[string]any{"alpha": float64(float32(1.0 / 6))}), node("Mul", "y", "s", "x")},
			swishes, []string{"hard_swish_fwd_f32"}},
		"hard swish of Keras": {[][]byte{node("Add", "a", "x", "three"), node("Clip", "l", "a", "zero", "six"),
			node("Mul", "s", "l", "sixth"), node("Mul", "y", "x", "s")}, swishes, []string{"hard_swish_fwd_f32"}},
		"hard swish, divided": {[][]byte{node("Add", "a", "three", "x"), node("Clip", "l", "a", "zero", "six"),
			node("Div", "s", "l", "six"), node("Mul", "y", "x", "s")}, swishes, []string{"hard_swish_fwd_f32"}},
		"another hard sigmoid": {[][]byte{node("HardSigmoid", "s", "x"), node("Mul", "y", "s", "x")}, nil,
			[]string{"scale_fwd_f32", "clip_fwd_f32", "multiply_fwd_f32"}},
		"another ceiling": {[][]byte{node("Add", "a", "x", "three"), node("Clip", "l", "a", "zero", "five"),
			node("Div", "s", "l", "six"), node("Mul", "y", "x", "s")}, nil, []string{"scale_fwd_f32", "clip_fwd_f32", "scale_fwd_f32", "multiply_fwd_f32"}},
		"layer normalization": {[][]byte{node("LayerNormalization", "y", "x", "gamma", "beta")}, normalized, []string{"normalize_fwd_f32"}},
		"product and bias":    {[][]byte{node("MatMul", "z", "x", "w"), node("Add", "y", "c", "z")}, doubled, []string{"matmul_bias_fwd_f32"}},
		"tiny divisor":        {[][]byte{node("Div", "y", "x", "tiny")}, nil, []string{"divide_broadcast_fwd_f32"}},
		"numbers":             {[][]byte{node("Mul", "z", "half", "x"), node("Sub", "y", "one", "z")}, affine, []string{"scale_fwd_f32", "scale_fwd_f32"}},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := Read(modelOf(18, graphOf{
				nodes: c.nodes,
				tensors: [][]byte{
					tensorOf("root", nil, math.Sqrt2), tensorOf("inverse", nil, math.Sqrt2/2), tensorOf("one", []int{1}, 1), tensorOf("half", nil, 0.5),
					tensorOf("tiny", nil, 1e-40), tensorOf("zero", nil, 0), tensorOf("three", nil, 3), tensorOf("five", nil, 5), tensorOf("six", nil, 6),
					tensorOf("sixth", nil, float64(float32(1.0/6))),
					tensorOf("gamma", []int{2}, 2, 3), tensorOf("beta", []int{2}, 0, 1), tensorOf("w", []int{2, 2}, 2, 0, 0, 2), tensorOf("c", []int{2}, 10, 11),
				},
				inputs: [][]byte{valueOf("x", -1, 2, 2)}, outputs: [][]byte{valueOf("y")},
			}), nil)
			if err != nil {
				t.Fatal(err)
			}
			n, err := m.Network(Options{Output: "y", Frozen: func(string) bool { return true }})
			if err != nil {
				t.Fatal(err)
			}
			b := graph.New(tensor.Float32)
			b.Output("y", n.Apply(b, b.Data("x", tensor.Float32, 2, 2, 2)))
			p, err := b.Compile()
			if err != nil {
				t.Fatal(err)
			}
			if launches := regexp.MustCompile(`\w+_f32`).FindAllString(p.Dump(), -1); !slices.Equal(launches, c.launches) {
				t.Errorf("launches are %q, want %q", launches, c.launches)
			}
			if c.want == nil {
				return
			}
			got, err := n.evaluate("y", &storedTensor{Type: Float32, Shape: []int{2, 2, 2}, floats: x})
			if err != nil {
				t.Fatal(err)
			}
			if err := near(got, &ndarray{[]int{2, 2, 2}, Float32, c.want}, 1e-6, 1e-6); err != nil {
				t.Error(err)
			}
		})
	}
}

// Constants and scales may broadcast in ways that the single ops do not.
func TestTransformersBroadcast(t *testing.T) {
	node := func(op, y string, inputs ...string) []byte { return nodeOf(op, inputs, []string{y}, nil) }
	ones, x := [][]byte{tensorOf("one", []int{1, 1, 1, 1}, 1), tensorOf("half", []int{1, 1, 1, 1}, 0.5)}, []float64{-3, -1, 0.5, 0, 2, 1, 4, 3}
	var gelus, scaled, normalized []float64
	for i, v := range x {
		gelus = append(gelus, v*(1+math.Erf(v/math.Sqrt2))/2)
		mean, row := (x[i/2*2]+x[i/2*2+1])/2, float64(i/2%2)
		scaled = append(scaled, (v-mean)/math.Sqrt((v-mean)*(v-mean)+1e-5)*(2+row))
		normalized = append(normalized, scaled[i]+10*row+float64(i%2))
	}
	for name, c := range map[string]struct {
		nodes, tensors [][]byte
		want           []float64
		shape          []int
	}{
		"GELU with numbers of four axes": {
			[][]byte{node("Div", "z", "x", "root"), node("Erf", "e", "z"), node("Add", "f", "e", "one"), node("Mul", "g", "x", "f"), node("Mul", "y", "g", "half")},
			append(ones, tensorOf("root", nil, math.Sqrt2)), gelus, []int{1, 2, 2, 2},
		},
		"layer normalization with a scale for each row": {
			[][]byte{node("LayerNormalization", "y", "x", "gamma")}, [][]byte{tensorOf("gamma", []int{2, 1}, 2, 3)}, scaled, []int{2, 2, 2},
		},
		"layer normalization with a bias for each element": {
			[][]byte{node("LayerNormalization", "y", "x", "gamma", "beta")},
			[][]byte{tensorOf("gamma", []int{2, 1}, 2, 3), tensorOf("beta", []int{1, 2, 2}, 0, 1, 10, 11)}, normalized, []int{2, 2, 2},
		},
	} {
		m, err := Read(modelOf(18, graphOf{nodes: c.nodes, tensors: c.tensors, inputs: [][]byte{valueOf("x", -1, 2, 2)}, outputs: [][]byte{valueOf("y")}}), nil)
		if err != nil {
			t.Fatal(err)
		}
		n, err := m.Network(Options{Output: "y", Frozen: func(string) bool { return true }})
		if err != nil {
			t.Fatal(err)
		}
		got, err := n.evaluate("y", &storedTensor{Type: Float32, Shape: []int{2, 2, 2}, floats: x})
		if err == nil {
			err = near(got, &ndarray{c.shape, Float32, c.want}, 1e-6, 1e-6)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What differs from a GELU in one number, in the order of a division, or in a number that is
// sampled, is none.
func TestAlmostGELU(t *testing.T) {
	for name, c := range map[string]struct {
		divide []string
		root   float64
		half   []int
		frozen bool
	}{
		"another number":   {[]string{"x", "root"}, 1.41, nil, true},
		"another dividend": {[]string{"root", "x"}, math.Sqrt2, nil, true},
		"a sampled factor": {[]string{"x", "root"}, math.Sqrt2, []int{1}, false},
		"a GELU":           {[]string{"x", "root"}, math.Sqrt2, []int{1}, true},
	} {
		node := func(op, y string, inputs ...string) []byte { return nodeOf(op, inputs, []string{y}, nil) }
		m, err := Read(modelOf(18, graphOf{
			nodes: [][]byte{node("Div", "z", c.divide...), node("Erf", "e", "z"), node("Add", "f", "e", "one"), node("Mul", "g", "x", "f"),
				node("Mul", "y", "g", "half")},
			tensors: [][]byte{tensorOf("root", nil, c.root), tensorOf("one", nil, 1), tensorOf("half", c.half, 0.5)},
			inputs:  [][]byte{valueOf("x", -1, 2)}, outputs: [][]byte{valueOf("y")},
		}), nil)
		if err != nil {
			t.Fatal(err)
		}
		n, err := m.Network(Options{Frozen: func(string) bool { return c.frozen }})
		if err != nil {
			t.Fatal(err)
		}
		b := graph.New(tensor.Float32)
		b.Output("y", n.Apply(b, b.Data("x", tensor.Float32, 2, 2)))
		p, err := b.Compile()
		if err != nil {
			t.Fatal(err)
		}
		if is := strings.Contains(p.Dump(), "gelu_fwd"); is != (name == "a GELU") {
			t.Errorf("%s: is a GELU: %v", name, is)
		}
	}
}

// A weight is found not to depend on the images without a search of all paths, here 2^60 of them.
func TestFollowsManyPaths(t *testing.T) {
	nodes, last := [][]byte{}, "w"
	for i := range 60 {
		next := fmt.Sprint("w", i)
		nodes, last = append(nodes, nodeOf("Add", []string{last, last}, []string{next}, nil)), next
	}
	nodes = append(nodes, nodeOf("BatchNormalization", []string{last, "one", "zero", "zero", "one"}, []string{"s"}, map[string]any{"training_mode": 1}),
		nodeOf("Add", []string{"x", "s"}, []string{"y"}, nil))
	m, err := Read(modelOf(15, graphOf{
		nodes:   nodes,
		tensors: [][]byte{tensorOf("w", []int{1, 2, 2}, 1, 3, 5, 9), tensorOf("one", []int{2}, 1, 1), tensorOf("zero", []int{2}, 0, 0)},
		inputs:  [][]byte{valueOf("x", -1, 2, 2)}, outputs: [][]byte{valueOf("y")},
	}), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := evaluate(m, "y", &storedTensor{Type: Float32, Shape: []int{1, 2, 2}, floats: make([]float64, 4)})
	if err == nil {
		err = near(got, &ndarray{[]int{1, 2, 2}, Float32, []float64{-1, 1, -1, 1}}, 1e-6, 1e-6)
	}
	if err != nil {
		t.Error(err)
	}
}
