package onnx

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// mobile is a block of MobileNet as exporters write it: padding on one side as a separate node, a
// depthwise convolution with a stride, batch normalisation, ReLU6, and a pointwise convolution
// with a bias and batch normalisation.
func mobile(t *testing.T) *Model {
	t.Helper()
	names := func(prefix string) []string {
		return []string{prefix + ".weight", prefix + ".bias", prefix + ".mean", prefix + ".var"}
	}
	norm := func(prefix string, n int) (tensors [][]byte) {
		for i, name := range names(prefix) {
			tensors = append(tensors, tensorOf(name, []int{n}, mobileValues(name, n, []float64{1, 0, 0, 2}[i])...))
		}
		return tensors
	}
	m, err := Read(modelOf(13, graphOf{
		nodes: [][]byte{
			nodeOf("Pad", []string{"x", "pads"}, []string{"padded"}, nil),
			nodeOf("Conv", []string{"padded", "depth"}, []string{"c"}, map[string]any{"group": 2, "strides": []int{2, 2}, "kernel_shape": []int{3, 3}}),
			nodeOf("BatchNormalization", append([]string{"c"}, names("first")...), []string{"n"}, nil),
			nodeOf("Clip", []string{"n", "low", "high"}, []string{"r"}, nil),
			nodeOf("Conv", []string{"r", "point", "point.bias"}, []string{"d"}, nil),
			nodeOf("BatchNormalization", append([]string{"d"}, names("second")...), []string{"y"}, nil),
		},
		tensors: slices.Concat([][]byte{
			integersOf("pads", 0, 0, 0, 0, 0, 0, 1, 1), tensorOf("low", nil, 0), tensorOf("high", nil, 6),
			tensorOf("depth", []int{2, 1, 3, 3}, mobileValues("depth", 18, 0)...), tensorOf("point", []int{3, 2, 1, 1}, mobileValues("point", 6, 0)...),
			tensorOf("point.bias", []int{3}, mobileValues("point.bias", 3, 0)...),
		}, norm("first", 2), norm("second", 3)),
		inputs: [][]byte{valueOf("x", -1, 2, 4, 6)}, outputs: [][]byte{valueOf("y")},
	}), nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// mobileValues are n float32 around a centre, different for each name.
func mobileValues(name string, n int, centre float64) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = float64(float32(centre + math.Sin(float64(7*i+len(name)*len(name)+int(name[0])))))
	}
	return values
}

// mobileOutput computes the block by its definition, for one image [2 4 6], where of returns the
// values of a weight.
func mobileOutput(x []float64, of func(name string, n int, centre float64) []float64) []float64 {
	norm := func(prefix string, channel, n int, v float64) float64 {
		scale, bias := of(prefix+".weight", n, 1)[channel], of(prefix+".bias", n, 0)[channel]
		mean, variance := mobileValues(prefix+".mean", n, 0)[channel], mobileValues(prefix+".var", n, 2)[channel]
		return (v-mean)/math.Sqrt(variance+1e-5)*scale + bias
	}
	depth, point, bias := of("depth", 18, 0), of("point", 6, 0), of("point.bias", 3, 0)
	const height, width = 2, 3
	var inner [2][height * width]float64
	for c := range inner {
		for i := range inner[c] {
			sum := 0.0
			for tap := range 9 {
				if row, column := i/width*2+tap/3, i%width*2+tap%3; row < 4 && column < 6 {
					sum += depth[c*9+tap] * x[(c*4+row)*6+column]
				}
			}
			inner[c][i] = min(max(norm("first", c, 2, sum), 0), 6)
		}
	}
	var y []float64
	for k := range 3 {
		for i := range height * width {
			y = append(y, norm("second", k, 3, point[2*k]*inner[0][i]+point[2*k+1]*inner[1][i]+bias[k]))
		}
	}
	return y
}

func mobileImage() []float64 { return mobileValues("an image", 48, 0.5) }

// Padding, batch normalisation and clips become part of the convolutions, with frozen weights and
// with sampled ones.
func TestMobileBlock(t *testing.T) {
	x, want := mobileImage(), mobileOutput(mobileImage(), mobileValues)
	for name, frozen := range map[string]func(string) bool{"frozen": func(string) bool { return true }, "sampled": nil} {
		t.Run(name, func(t *testing.T) {
			n, err := mobile(t).Network(Options{Frozen: frozen})
			if err != nil {
				t.Fatal(err)
			}
			got, err := n.evaluate("y", &storedTensor{Type: Float32, Shape: []int{1, 2, 4, 6}, floats: x})
			if err != nil {
				t.Fatal(err)
			}
			if err := near(got, &ndarray{[]int{1, 3, 2, 3}, Float32, want}, 1e-5, 1e-6); err != nil {
				t.Error(err)
			}
			b := graph.New(tensor.Float32)
			b.Output("y", n.Apply(b, b.Data("images", tensor.Float32, 2, 2, 4, 6)))
			convolutions := 0
			for _, a := range b.Applications() {
				if strings.HasSuffix(a.Op.Name(), "conv2d") {
					convolutions++
				}
			}
			if convolutions != 2 {
				t.Errorf("%d convolutions in the graph, want 2: summaries and exported files have all of them", convolutions)
			}
			p, err := b.Compile()
			if err != nil {
				t.Fatal(err)
			}
			for kernel, count := range map[string]int{"grouped_conv2d_bias_fwd_f32": 1, " conv2d_bias_fwd_f32": 1, "unslice": 0, "clip_fwd": 0} {
				if n := strings.Count(p.Dump(), kernel); n != count {
					t.Errorf("%d launches of %q, want %d:\n%s", n, kernel, count, p.Dump())
				}
			}
			if frozen != nil && !strings.Contains(p.Dump(), " 2 launches;") {
				t.Errorf("want 2 launches:\n%s", p.Dump())
			}
		})
	}
}

// A convolution that something else reads, too, is also computed without the batch normalisation.
func TestConvolutionReadTwice(t *testing.T) {
	m, err := Read(modelOf(13, graphOf{
		nodes: [][]byte{
			nodeOf("Conv", []string{"x", "weight", "bias"}, []string{"c"}, nil),
			nodeOf("BatchNormalization", []string{"c", "scale", "shift", "mean", "var"}, []string{"n"}, map[string]any{"epsilon": 0.0}),
			nodeOf("Add", []string{"c", "n"}, []string{"y"}, nil),
		},
		tensors: [][]byte{
			tensorOf("weight", []int{1, 1, 1, 1}, 2), tensorOf("bias", []int{1}, 1), tensorOf("scale", []int{1}, 3), tensorOf("shift", []int{1}, -1),
			tensorOf("mean", []int{1}, 5), tensorOf("var", []int{1}, 4),
		},
		inputs: [][]byte{valueOf("x", -1, 1, 1, 2)}, outputs: [][]byte{valueOf("y")},
	}), nil)
	if err != nil {
		t.Fatal(err)
	}
	for output, want := range map[string][]float64{"c": {3, 7}, "n": {-4, 2}, "y": {-1, 9}} {
		got, err := evaluate(m, output, &storedTensor{Type: Float32, Shape: []int{1, 1, 1, 2}, floats: []float64{1, 3}})
		if err != nil {
			t.Fatal(err)
		}
		if err := near(got, &ndarray{[]int{1, 1, 1, 2}, Float32, want}, 1e-6, 0); err != nil {
			t.Errorf("%s: %v", output, err)
		}
	}
}

// Gradients of all weights against central differences of the definition.
func TestMobileGradients(t *testing.T) {
	n, err := mobile(t).Network(Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := graph.New(tensor.Float64)
	y := n.Apply(b, b.Data("images", tensor.Float64, 1, 2, 4, 6))
	loss := b.Apply(op.Sum{}, b.Apply(op.Squared{}, y))
	parameters := b.Parameters()
	for i, g := range b.Gradients(loss, parameters...) {
		b.Output("gradient of "+parameters[i].Name(), g)
	}
	p, err := b.Compile()
	if err != nil {
		t.Fatal(err)
	}
	host := tensor.NewHost(1)
	defer host.Close()
	s, err := p.Load(host, graph.LoadOptions{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := graph.Write(s, "images", 0, 0, mobileImage()); err != nil {
		t.Fatal(err)
	}
	if err := s.Run(1); err != nil {
		t.Fatal(err)
	}
	energy := func(name string, i int, by float64) (sum float64) {
		for _, v := range mobileOutput(mobileImage(), func(other string, n int, centre float64) []float64 {
			values := mobileValues(other, n, centre)
			if other == name {
				values[i] += by
			}
			return values
		}) {
			sum += v * v
		}
		return sum
	}
	const step = 1e-5
	for _, parameter := range p.Parameters() {
		got := make([]float64, parameter.Shape.Elements())
		if err := graph.Read(s, "gradient of "+parameter.Name, 0, 0, got); err != nil {
			t.Fatal(err)
		}
		for i, g := range got {
			want := (energy(parameter.Name, i, step) - energy(parameter.Name, i, -step)) / (2 * step)
			if math.Abs(g-want) > 1e-5*(1+math.Abs(want)) {
				t.Errorf("gradient of %s[%d] is %v, want %v", parameter.Name, i, g, want)
			}
		}
	}
}

// A margin that a convolution does not take over is applied, and images may be padded twice.
func TestMargins(t *testing.T) {
	for name, nodes := range map[string][][]byte{
		"before a ReLU": {
			nodeOf("Pad", []string{"x", "pads"}, []string{"p"}, nil), nodeOf("Relu", []string{"p"}, []string{"y"}, nil),
		},
		"twice": {
			nodeOf("Pad", []string{"x", "left"}, []string{"p"}, nil), nodeOf("Pad", []string{"p", "right"}, []string{"q"}, nil),
			nodeOf("Conv", []string{"q", "one"}, []string{"y"}, nil),
		},
		"and its shape": {
			nodeOf("Pad", []string{"x", "pads"}, []string{"p"}, nil), nodeOf("Shape", []string{"p"}, []string{"s"}, nil),
			nodeOf("Conv", []string{"p", "one"}, []string{"c"}, nil), nodeOf("Reshape", []string{"c", "s"}, []string{"y"}, nil),
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := Read(modelOf(13, graphOf{
				nodes: nodes,
				tensors: [][]byte{
					integersOf("pads", 0, 0, 0, 1, 0, 0, 0, 2), integersOf("left", 0, 0, 0, 1, 0, 0, 0, 0), integersOf("right", 0, 0, 0, 0, 0, 0, 0, 2),
					tensorOf("one", []int{1, 1, 1, 1}, 1),
				},
				inputs: [][]byte{valueOf("x", -1, 1, 2, 2)}, outputs: [][]byte{valueOf("y")},
			}), nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := evaluate(m, "y", &storedTensor{Type: Float32, Shape: []int{1, 1, 2, 2}, floats: []float64{1, 2, 3, 4}})
			if err != nil {
				t.Fatal(err)
			}
			if err := near(got, &ndarray{[]int{1, 1, 2, 5}, Float32, []float64{0, 1, 2, 0, 0, 0, 3, 4, 0, 0}}, 0, 0); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSelected: Where of known values selects them exactly, also NaN and the sign of zero.
func TestSelected(t *testing.T) {
	nan, minus := math.NaN(), math.Copysign(0, -1)
	condition := &ndarray{[]int{6}, Bool, []float64{1, 1, 1, 0, 0, 0}}
	x := &ndarray{[]int{6}, Float32, []float64{1, nan, minus, 4, nan, 6}}
	y := &ndarray{[]int{2, 1}, Float32, []float64{nan, 0}}
	got, err := selected(condition, x, y)
	if err != nil {
		t.Fatal(err)
	}
	want := []float64{1, nan, minus, nan, nan, nan, 1, nan, minus, 0, 0, 0}
	for i, v := range got.values {
		same := v == want[i] && math.Signbit(v) == math.Signbit(want[i]) || math.IsNaN(v) && math.IsNaN(want[i])
		if !same {
			t.Errorf("element %d is %v, want %v", i, v, want[i])
		}
	}
}
