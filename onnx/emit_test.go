package onnx

import (
	"bytes"
	"cmp"
	"math"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/op/array"
	"github.com/pollen-ml/pollen/graph/optest"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
)

// A convolution with more padding after the end of its axes than before keeps it in the model: for
// a sum over windows of 2 x 2, only the last row and column of outputs see the zeros.
func TestEmitTrailingPadding(t *testing.T) {
	ones := []float64{1, 1, 1, 1, 1, 1, 1, 1}
	for name, o := range map[string]graph.Op{
		"depthwise": op.GroupedConv2D{Stride: op.Square(1), Dilation: op.Square(1), Trailing: op.Square(1), Groups: 2},
		"dense":     op.Conv2D{Stride: op.Square(1), Dilation: op.Square(1), Trailing: op.Square(1)},
	} {
		t.Run(name, func(t *testing.T) {
			channels, filters, factor := 2, 2, 1.0
			if name == "dense" { // the filter also adds the two channels, which are equal
				filters, factor = 1, 2
			}
			b := graph.New(tensor.Float32)
			x := b.Data("images", tensor.Float32, 1, channels, 2, 2)
			w := b.Parameter("w", nil, filters, channels/filters, 2, 2)
			y := b.Apply(o, x, w)
			if b.Err() != nil {
				t.Fatal(b.Err())
			}
			var want []float64
			for range filters {
				want = append(want, 4*factor, 2*factor, 2*factor, factor)
			}
			weights := float32s(ones[:graph.ShapeOf(w).Elements()])
			checkEmitted(t, b, x, y, [][]float32{weights}, &ndarray{[]int{1, channels, 2, 2}, Float32, ones}, &ndarray{[]int{1, filters, 2, 2}, Float32, want}, 0)
		})
	}
}

// valuesOf returns the numbers that a kernel makes of x.
func valuesOf(values func(y, x []float32), x ...float32) []float64 {
	y := make([]float32, len(x))
	values(y, x)
	var all []float64
	for _, v := range y {
		all = append(all, float64(v))
	}
	return all
}

// Every function is written and read again, and has the values of package optest.
func TestFunctions(t *testing.T) {
	x := []float64{0.25, 0.5, 1, 3}
	naive := map[graph.Op]func(in [][]float64) []float64{} // of one number
	for _, c := range optest.Cases() {
		if c.Build == nil && c.Inputs[0].Shape.Elements() == 1 {
			naive[c.Op] = c.Naive
		}
	}
	for name, f := range functions {
		t.Run(name, func(t *testing.T) {
			var want []float64
			for _, v := range x {
				want = append(want, naive[f.op]([][]float64{{v}})...)
			}
			b := graph.New(tensor.Float32)
			image := b.Data("images", tensor.Float32, 1, 1, 2, 2)
			y := b.Apply(f.op, image)
			if b.Err() != nil {
				t.Fatal(b.Err())
			}
			shape := []int{1, 1, 2, 2}
			checkEmitted(t, b, image, y, nil, &ndarray{shape, Float32, x}, &ndarray{shape, Float32, want}, 1e-6)
			for i, v := range x {
				if f.fold != nil && math.Abs(f.fold(v)-want[i]) > 1e-12 {
					t.Errorf("fold(%v) = %v, want %v", v, f.fold(v), want[i])
				}
			}
		})
	}
}

// The elementwise ops with attributes, which hard sigmoids consist of, and activations.
func TestEmitAttributes(t *testing.T) {
	for name, c := range map[string]struct {
		op   graph.Op
		want []float64
	}{
		"factor":            {op.Scale{Factor: 2}, []float64{-4, 0, 2, 6}},
		"offset":            {op.Scale{Factor: 1, Offset: 0.5}, []float64{-1.5, 0.5, 1.5, 3.5}},
		"factor and offset": {op.Scale{Factor: -2, Offset: 0.5}, []float64{4.5, 0.5, -1.5, -5.5}},
		"GELU":              {op.GELU{}, valuesOf(kernel.GELU, -2, 0, 1, 3)},
		"hard swish":        {op.HardSwish{}, valuesOf(kernel.HardSwish, -2, 0, 1, 3)},
		"clip":              {op.Clip{Low: -1, High: 2}, []float64{-1, 0, 1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			b := graph.New(tensor.Float32)
			x := b.Data("images", tensor.Float32, 1, 1, 2, 2)
			y := b.Apply(c.op, x)
			if b.Err() != nil {
				t.Fatal(b.Err())
			}
			image := []int{1, 1, 2, 2}
			checkEmitted(t, b, x, y, nil, &ndarray{image, Float32, []float64{-2, 0, 1, 3}}, &ndarray{image, Float32, c.want}, 0)
		})
	}
}

// A written network works for any number of images, also where the batch moves to another axis, as
// in attention, where values broadcast, and where weights are computed.
func TestEmitAttention(t *testing.T) {
	network := func(b *graph.Builder, x *graph.Node) *graph.Node {
		weights := make([]float64, 6*18)
		for i := range weights {
			weights[i] = float64(i*i%11)/11 - 0.4
		}
		w := b.Apply(op.Scale{Factor: 0.5}, b.Table("w", weights, 6, 18))
		bias := b.Table("positions", weights[:12], 1, 2, 6)
		x = b.Apply(op.Add{}, x, bias)
		scale := b.Apply(op.ViewAs(1, 2, 1), b.Apply(op.Mean{Axes: op.AxesOf(2)}, b.Apply(op.Abs{}, x)))
		x = b.Apply(op.Divide{}, x, scale)
		all := b.Apply(op.MatMul{}, b.Apply(op.ViewAs(2, 6), x), w)
		all = b.Apply(array.TransposeBy(2, 0, 3, 1, 4), b.Apply(op.ViewAs(1, 2, 3, 3, 2), all)) // [3 B 3 2 2]
		var part [3]*graph.Node
		for i := range part {
			part[i] = b.Apply(op.ViewAs(3, 2, 2), b.Apply(array.Slice{Axis: 0, Start: i, Step: 1, Count: 1}, all))
		}
		attention := b.Apply(op.Softmax{}, b.Apply(op.ViewAs(6, 2), b.Apply(op.BatchMatMul{TransposeB: true}, part[0], part[1])))
		y := b.Apply(op.BatchMatMul{}, b.Apply(op.ViewAs(3, 2, 2), attention), part[2])
		y = b.Apply(op.ViewAs(1, 2, 6), b.Apply(array.TransposeBy(0, 2, 1, 3), b.Apply(op.ViewAs(1, 3, 2, 2), y)))
		return b.Apply(op.Sum{Axes: op.AxesOf(1)}, b.Apply(op.Power{}, b.Apply(op.Abs{}, y), b.Table("two", []float64{2}, 1, 1, 1)))
	}
	checkBatches(t, network)
}

// Matrices with the batch as rows or columns, times constants.
func TestEmitProducts(t *testing.T) {
	for name, o := range map[string]op.BatchMatMul{"plain": {}, "transposed": {TransposeA: true, TransposeB: true}} {
		t.Run(name, func(t *testing.T) {
			checkBatches(t, func(b *graph.Builder, x *graph.Node) *graph.Node {
				weights := make([]float64, 2*6*3)
				for i := range weights {
					weights[i] = float64(i*i%7) - 3
				}
				w := b.Table("w", weights)
				table := func(shape ...int) *graph.Node { return b.Apply(op.ViewAs(shape...), w) }
				rows, left, columns, right := array.TransposeBy(1, 0, 2), table(2, 6, 3), array.TransposeBy(1, 2, 0), table(2, 3, 6)
				if o.TransposeA {
					rows, left, columns, right = columns, table(2, 3, 6), rows, table(2, 6, 3)
				}
				y := b.Apply(array.TransposeBy(1, 0, 2), b.Apply(o, b.Apply(rows, x), left))     // [B 2 3]
				z := b.Apply(array.TransposeBy(2, 0, 1), b.Apply(o, right, b.Apply(columns, x))) // [B 2 3]
				return b.Apply(op.ViewAs(1, 6), b.Apply(op.Add{}, y, b.Apply(op.Scale{Factor: 0.5}, z)))
			})
		})
	}
}

// Constants times matrices of each image, rows [L B E] of attention over the second axis, and the
// ops that have operators of other names.
func TestEmitBatches(t *testing.T) {
	numbers := func(b *graph.Builder, name string, shape ...int) *graph.Node {
		values := make([]float64, tensor.Shape(shape).Elements())
		for i := range values {
			values[i] = float64(i*i%7) - 3
		}
		return b.Apply(op.ViewAs(shape...), b.Table(name, values))
	}
	flat := func(b *graph.Builder, x *graph.Node) *graph.Node { return b.Apply(op.ViewAs(1, 6), x) }
	for name, network := range map[string]func(b *graph.Builder, x *graph.Node) *graph.Node{
		"constant queries": func(b *graph.Builder, x *graph.Node) *graph.Node { // [2B 3 2] x [2B 2 1]
			keys := b.Apply(op.Sum{Axes: op.AxesOf(3)}, b.Apply(op.ViewAs(2, 2, 1, 3), x))
			return flat(b, b.Apply(op.BatchMatMul{TransposeA: true}, numbers(b, "q", 2, 2, 3), keys))
		},
		"constant values": func(b *graph.Builder, x *graph.Node) *graph.Node {
			return flat(b, b.Apply(op.BatchMatMul{TransposeA: true, TransposeB: true}, b.Apply(op.ViewAs(2, 2, 3), x), numbers(b, "v", 2, 1, 2)))
		},
		"rows": func(b *graph.Builder, x *graph.Node) *graph.Node {
			rows := b.Apply(op.ViewAs(2, 6), b.Apply(array.TransposeBy(1, 0, 2), x)) // [2B 6]
			rows = b.Apply(op.BiasAdd{}, b.Apply(op.MatMul{}, rows, numbers(b, "w", 6, 3)), numbers(b, "c", 3))
			return flat(b, b.Apply(array.TransposeBy(1, 0, 2), b.Apply(op.ViewAs(2, 1, 3), b.Apply(op.Softmax{}, rows))))
		},
		"a mean ahead of rows": func(b *graph.Builder, x *graph.Node) *graph.Node {
			rows := b.Apply(array.TransposeBy(1, 0, 2), x) // [2 B 6]
			mean := b.Apply(op.ViewAs(1, 1, 6), b.Apply(op.Mean{Axes: op.AxesOf(0)}, rows))
			all := b.Apply(op.Add{}, b.Apply(array.Unslice{Slice: array.Slice{Axis: 0, Step: 1, Count: 1}, Extent: 3}, mean),
				b.Apply(array.Unslice{Slice: array.Slice{Axis: 0, Start: 1, Step: 1, Count: 2}, Extent: 3}, rows))
			return flat(b, b.Apply(array.TransposeBy(1, 0, 2), b.Apply(array.Slice{Axis: 0, Step: 1, Count: 1}, all)))
		},
		"heads of one row": func(b *graph.Builder, x *graph.Node) *graph.Node {
			all := b.Apply(array.TransposeBy(1, 0, 2), x) // [2 B 6]
			row := b.Apply(op.ViewAs(1, 6), b.Apply(array.Slice{Axis: 0, Step: 1, Count: 1}, all))
			row = b.Apply(op.ViewAs(1, 1, 6), b.Apply(op.MatMul{}, row, numbers(b, "w", 6, 6)))
			heads := b.Apply(array.TransposeBy(1, 0, 2), b.Apply(op.ViewAs(1, 3, 2), row)) // [3B 1 2]
			keys := b.Apply(array.TransposeBy(1, 2, 0), b.Apply(op.ViewAs(2, 3, 2), all))  // [3B 2 2]
			return flat(b, b.Apply(op.BatchMatMul{}, heads, keys))
		},
		"comparisons": func(b *graph.Builder, x *graph.Node) *graph.Node {
			limits := numbers(b, "limits", 1, 2, 6)
			y := b.Apply(op.Compare{Less: true}, x, limits)
			for _, o := range []op.Compare{{Equal: true}, {Less: true, Equal: true}} {
				y = b.Apply(op.Add{}, b.Apply(op.Scale{Factor: 2}, y), b.Apply(o, limits, x))
			}
			return b.Apply(op.Sum{Axes: op.AxesOf(1)}, y)
		},
		"a bias of channels of lines": func(b *graph.Builder, x *graph.Node) *graph.Node {
			return b.Apply(op.Sum{Axes: op.AxesOf(1)}, b.Apply(op.BiasAdd{}, x, numbers(b, "c", 2)))
		},
		"elements moved apart": func(b *graph.Builder, x *graph.Node) *graph.Node {
			apart := b.Apply(array.Unslice{Slice: array.Slice{Axis: 2, Start: 1, Step: 3, Count: 6}, Extent: 17}, x)
			closed := b.Apply(array.Unslice{Slice: array.Slice{Axis: 2, Start: 1, Step: 3, Count: 6}, Extent: 19}, x)
			y := b.Apply(op.Sum{Axes: op.AxesOf(1)}, b.Apply(op.Add{}, apart, b.Apply(array.Slice{Axis: 2, Start: 2, Step: 1, Count: 17}, closed)))
			return b.Apply(array.Slice{Axis: 1, Start: 1, Step: 3, Count: 6}, b.Apply(array.Unslice{Slice: array.Slice{Axis: 1, Step: 1, Count: 17}, Extent: 18}, y))
		},
	} {
		t.Run(name, func(t *testing.T) { checkBatches(t, network) })
	}
}

// checkBatches writes a network of images [2 6] with outputs [6], and compares what the file
// computes for three images with what the network computes for each.
func checkBatches(t *testing.T, network func(b *graph.Builder, x *graph.Node) *graph.Node) {
	t.Helper()
	images, want := &ndarray{[]int{3, 2, 6}, Float32, nil}, &ndarray{[]int{3, 6}, Float32, nil}
	for i := range 3 {
		b, image, y := graph.New(tensor.Float32), make([]float32, 12), make([]float32, 6)
		for k := range image {
			image[k] = float32((5*k+7*i)%11) / 4
			images.values = append(images.values, float64(image[k]))
		}
		b.Output("y", network(b, b.Data("image", tensor.Float32, 1, 2, 6)))
		err := b.OnHost(graph.LoadOptions{}, func(s *graph.Session) error {
			return cmp.Or(graph.Write(s, "image", 0, 0, image), s.Run(1), graph.Read(s, "y", 0, 0, y))
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range y {
			want.values = append(want.values, float64(v))
		}
	}
	b := graph.New(tensor.Float32)
	x := b.Data("images", tensor.Float32, 1, 2, 6)
	checkEmitted(t, b, x, network(b, x), nil, images, want, 0)
}

// A sum that broadcasts for one image, but not for several, is an error: [B 6] is not repeated as
// [2B 6].
func TestEmitMergedBatch(t *testing.T) {
	b := graph.New(tensor.Float32)
	x := b.Data("images", tensor.Float32, 1, 2, 6)
	y := b.Apply(op.Add{}, b.Apply(op.ViewAs(2, 6), x), b.Apply(op.Mean{Axes: op.AxesOf(1)}, x))
	if b.Err() != nil {
		t.Fatal(b.Err())
	}
	var writer Writer
	_, err := writer.Emit(b, x, writer.Input("x", Float32, -1, 2, 6), [][][]float32{nil}, "")
	if err == nil || !strings.Contains(err.Error(), "an op of shapes [2 6] and [1 6] has no translation") {
		t.Errorf("%v: error %v", graph.ShapeOf(y), err)
	}
}

// checkEmitted compares what the file of a graph computes for an image with what is wanted. The
// weights are the parameters of one sample.
func checkEmitted(t *testing.T, b *graph.Builder, x, y *graph.Node, weights [][]float32, image, want *ndarray, relative float64) {
	t.Helper()
	open := func(shape []int) []int { return append([]int{-1}, shape[1:]...) } // any number of images
	var writer Writer
	e, err := writer.Emit(b, x, writer.Input("x", Float32, open(image.shape)...), [][][]float32{weights}, "")
	if err != nil {
		t.Fatal(err)
	}
	value, _, err := e.Value(y)
	if err != nil {
		t.Fatal(err)
	}
	writer.Output("y", value, Float32, open(want.shape)...)
	var content bytes.Buffer
	if _, err := writer.WriteTo(&content); err != nil {
		t.Fatal(err)
	}
	m, err := Read(content.Bytes(), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := evaluate(m, value, &storedTensor{Type: image.kind, Shape: image.shape, floats: image.values})
	if err != nil {
		t.Fatal(err)
	}
	if err := near(got, want, relative, 0); err != nil {
		t.Error(err)
	}
}
