package stock

import (
	"math"
	"math/rand/v2"
	"testing"

	"gorgonia.org/gorgonia"
	dense "gorgonia.org/tensor"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// inputsOf makes the inputs of a row, with numbers around 1 where the row needs positive ones.
type inputsOf struct {
	g        *gorgonia.ExprGraph
	numbers  *rand.Rand
	all      gorgonia.Nodes
	positive bool
}

func (in *inputsOf) tensor(shape ...int) *gorgonia.Node {
	values := make([]float64, dense.Shape(shape).TotalSize())
	for i := range values {
		if values[i] = in.numbers.NormFloat64(); in.positive {
			values[i] = 0.5 + in.numbers.Float64()
		}
	}
	n := gorgonia.NewTensor(in.g, dense.Float64, len(shape), gorgonia.WithShape(shape...), gorgonia.WithName(string(rune('a'+len(in.all)))),
		gorgonia.WithValue(dense.New(dense.WithShape(shape...), dense.WithBacking(values))))
	in.all = append(in.all, n)
	return n
}

// row is an op, and what is known of Gorgonia's own results.
type row struct {
	name     string
	positive bool
	make     func(in *inputsOf) *gorgonia.Node
	value    func(in [][]float64) []float64 // where Gorgonia's is wrong or missing
	defect   string                         // what is wrong with Gorgonia's gradient, or its value
}

var rows = []row{
	{name: "LeakyRelu", make: func(in *inputsOf) *gorgonia.Node { return must(gorgonia.LeakyRelu(in.tensor(5, 7), 0.2)) }},
	{name: "Log2", positive: true, make: func(in *inputsOf) *gorgonia.Node { return must(gorgonia.Log2(in.tensor(5, 7))) }, defect: "gradient"},
	{name: "InverseSqrt", positive: true, make: func(in *inputsOf) *gorgonia.Node { return must(gorgonia.InverseSqrt(in.tensor(5, 7))) }, defect: "gradient"},
	{name: "Inverse", positive: true, make: func(in *inputsOf) *gorgonia.Node { return must(gorgonia.Inverse(in.tensor(5, 7))) }},
	{name: "Sign", make: func(in *inputsOf) *gorgonia.Node {
		x := in.tensor(5, 7)
		return must(gorgonia.HadamardProd(x, must(gorgonia.Sign(x))))
	}},
	{name: "Softplus of large numbers", make: func(in *inputsOf) *gorgonia.Node {
		return must(gorgonia.Softplus(must(gorgonia.Add(in.tensor(5), gorgonia.NewConstant(17.0)))))
	}, value: func(in [][]float64) []float64 {
		return mapped(in[0], func(x float64) float64 { return x + 17 + math.Log1p(math.Exp(-x-17)) })
	}, defect: "value"},
	{name: "Pow of two tensors", positive: true, make: func(in *inputsOf) *gorgonia.Node { return must(gorgonia.Pow(in.tensor(4, 3), in.tensor(4, 3))) }},
	{name: "Pow of a constant", make: func(in *inputsOf) *gorgonia.Node {
		return must(gorgonia.Pow(gorgonia.NewConstant(2.0), in.tensor(4, 3)))
	}},
	{name: "division of a constant", positive: true, make: func(in *inputsOf) *gorgonia.Node {
		return must(gorgonia.HadamardDiv(gorgonia.NewConstant(2.0), in.tensor(4, 3)))
	}},
	{name: "multiplication by 0", make: func(in *inputsOf) *gorgonia.Node {
		return must(gorgonia.Mul(in.tensor(4, 3), gorgonia.NewConstant(0.0)))
	}},
	{name: "OuterProd", make: func(in *inputsOf) *gorgonia.Node { return must(gorgonia.OuterProd(in.tensor(4), in.tensor(3))) }, defect: "gradient"},
	{name: "Mul of two vectors", make: func(in *inputsOf) *gorgonia.Node { return must(gorgonia.Mul(in.tensor(4), in.tensor(4))) }},
	{name: "Mul of a vector and a matrix", make: func(in *inputsOf) *gorgonia.Node { return must(gorgonia.Mul(in.tensor(4), in.tensor(4, 3))) }},
	{name: "Mul of a matrix and a vector", make: func(in *inputsOf) *gorgonia.Node { return must(gorgonia.Mul(in.tensor(4, 3), in.tensor(3))) }},
	{name: "Mul with transposed factors", make: func(in *inputsOf) *gorgonia.Node {
		return must(gorgonia.Mul(must(gorgonia.Transpose(in.tensor(4, 3))), must(gorgonia.Transpose(in.tensor(5, 4)))))
	}},
	{name: "BatchedMatMul", make: func(in *inputsOf) *gorgonia.Node {
		return must(gorgonia.BatchedMatMul(in.tensor(3, 2, 4), in.tensor(3, 4, 5)))
	}},
	{name: "BatchedMatMul transposed", make: func(in *inputsOf) *gorgonia.Node {
		return must(gorgonia.BatchedMatMul(in.tensor(2, 3, 4, 2), in.tensor(2, 3, 4, 5), true))
	}},
	{name: "Sum along axis 2 of 4", make: func(in *inputsOf) *gorgonia.Node { return must(gorgonia.Sum(in.tensor(2, 3, 4, 5), 2)) },
		value: func(in [][]float64) []float64 {
			return along(in[0], 6, 4, 5, func(a, b float64) float64 { return a + b })
		}, defect: "value"},
	{name: "Sum along two axes", make: func(in *inputsOf) *gorgonia.Node { return must(gorgonia.Sum(in.tensor(4, 3, 5), 0, 1)) }},
	{name: "Max along axis 2 of 4", make: func(in *inputsOf) *gorgonia.Node { return must(gorgonia.Max(in.tensor(2, 3, 4, 5), 2)) },
		value: func(in [][]float64) []float64 { return along(in[0], 6, 4, 5, math.Max) }, defect: "value"},
	{name: "Max of all", make: func(in *inputsOf) *gorgonia.Node { return must(gorgonia.Max(in.tensor(4, 3))) }},
	{name: "SoftMax along axis 0", make: func(in *inputsOf) *gorgonia.Node { return must(gorgonia.SoftMax(in.tensor(4, 3), 0)) }},
	{name: "SoftMax along axis 1 of 3", make: func(in *inputsOf) *gorgonia.Node { return must(gorgonia.SoftMax(in.tensor(2, 4, 3), 1)) }},
	{name: "LogSoftMax along axis 0", make: func(in *inputsOf) *gorgonia.Node { return must(gorgonia.LogSoftMax(in.tensor(4, 3), 0)) }},
	{name: "SoftMax of a column", make: func(in *inputsOf) *gorgonia.Node { return must(gorgonia.SoftMax(in.tensor(4, 1))) }, defect: "gradient"},
	{name: "SoftMax of a vector", make: func(in *inputsOf) *gorgonia.Node { return must(gorgonia.SoftMax(in.tensor(4))) }},
	{name: "a column over a vector", positive: true, make: func(in *inputsOf) *gorgonia.Node {
		return must(gorgonia.HadamardDiv(in.tensor(4, 1), in.tensor(4)))
	}},
	{name: "a vector less a row", make: func(in *inputsOf) *gorgonia.Node { return must(gorgonia.Sub(in.tensor(4), in.tensor(1, 4))) },
		value: func(in [][]float64) []float64 {
			difference := make([]float64, len(in[0]))
			for i, v := range in[0] {
				difference[i] = v - in[1][i]
			}
			return difference
		}, defect: "gradient"},
	{name: "MaxBetween of a vector and a column", make: func(in *inputsOf) *gorgonia.Node {
		return must(gorgonia.MaxBetween(in.tensor(4), in.tensor(4, 1)))
	}},
	{name: "MinBetween", make: func(in *inputsOf) *gorgonia.Node { return must(gorgonia.MinBetween(in.tensor(4, 3), in.tensor(4, 3))) }},
	{name: "MaxBetween", make: func(in *inputsOf) *gorgonia.Node { return must(gorgonia.MaxBetween(in.tensor(4, 3), in.tensor(4, 3))) }},
	{name: "Slice of every second", make: func(in *inputsOf) *gorgonia.Node { return must(gorgonia.Slice(in.tensor(7, 3), gorgonia.S(1, 6, 2))) }},
	{name: "Slice along axis 1", make: func(in *inputsOf) *gorgonia.Node { return must(gorgonia.Slice(in.tensor(4, 7), nil, gorgonia.S(2, 5))) }},
	{name: "Concat along axis 1", make: func(in *inputsOf) *gorgonia.Node {
		return must(gorgonia.Concat(1, in.tensor(4, 2), in.tensor(4, 3), in.tensor(4, 1)))
	}},
	{name: "Upsample2D", make: func(in *inputsOf) *gorgonia.Node { return must(gorgonia.Upsample2D(in.tensor(2, 3, 3, 2), 3)) }},
	{name: "GlobalAveragePool2D", make: func(in *inputsOf) *gorgonia.Node {
		return must(gorgonia.GlobalAveragePool2D(in.tensor(2, 3, 4, 5)))
	}, defect: "gradient"},
	{name: "GroupNorm", make: func(in *inputsOf) *gorgonia.Node {
		return must(gorgonia.GroupNorm(in.tensor(2, 4, 3, 2), in.tensor(1, 4, 1, 1), in.tensor(1, 4, 1, 1), 2, 4, 1e-5))
	}},
	{name: "BroadcastHadamardDiv", positive: true, make: func(in *inputsOf) *gorgonia.Node {
		return must(gorgonia.BroadcastHadamardDiv(in.tensor(4, 3), in.tensor(4, 1), nil, []byte{1}))
	}},
	{name: "broadcast along axis 2 of 4", make: func(in *inputsOf) *gorgonia.Node {
		return must(gorgonia.BroadcastHadamardProd(in.tensor(2, 3, 1, 5), in.tensor(2, 3, 4, 5), []byte{2}, nil))
	}, defect: "gradient"},
	{name: "product of two broadcast rows", make: func(in *inputsOf) *gorgonia.Node {
		like, rows, pattern := in.tensor(4, 3), []*gorgonia.Node{in.tensor(1, 3), in.tensor(1, 3)}, gorgonia.NewBroadcastPattern([]byte{0}, nil)
		for i, row := range rows {
			repeated, _, err := gorgonia.Broadcast(row, like, pattern)
			rows[i] = must(repeated, err)
		}
		return must(gorgonia.Add(must(gorgonia.HadamardProd(rows[0], rows[1])), must(gorgonia.HadamardProd(rows[0], like))))
	}},
	{name: "padded MaxPool2D", make: func(in *inputsOf) *gorgonia.Node {
		return must(gorgonia.MaxPool2D(in.tensor(2, 3, 5, 6), dense.Shape{3, 2}, []int{1, 1}, []int{2, 1}))
	}},
	{name: "Conv2d with all attributes", make: func(in *inputsOf) *gorgonia.Node {
		return must(gorgonia.Conv2d(in.tensor(2, 3, 7, 6), in.tensor(4, 3, 3, 2), dense.Shape{3, 2}, []int{2, 1}, []int{2, 1}, []int{1, 2}))
	}},
	{name: "Conv1d", make: func(in *inputsOf) *gorgonia.Node {
		return must(gorgonia.Conv1d(in.tensor(2, 3, 1, 9), in.tensor(4, 3, 1, 3), 3, 1, 2, 1))
	}},
	{name: "BinaryXent", positive: true, make: func(in *inputsOf) *gorgonia.Node {
		return must(gorgonia.BinaryXent(must(gorgonia.Sigmoid(in.tensor(4, 3))), in.tensor(4, 3)))
	}},
	{name: "Mish", make: func(in *inputsOf) *gorgonia.Node { return must(gorgonia.Mish(in.tensor(4, 3))) }},
	{name: "Norm 3", positive: true, make: func(in *inputsOf) *gorgonia.Node { return must(gorgonia.Norm(in.tensor(4, 3), 1, 3)) }},
	{name: "a logarithm of a softmax times y", positive: true, make: func(in *inputsOf) *gorgonia.Node {
		return must(gorgonia.Log(must(gorgonia.HadamardProd(must(gorgonia.SoftMax(in.tensor(4, 3))), in.tensor(4, 3)))))
	}},
}

func mapped(x []float64, f func(x float64) float64) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = f(v)
	}
	return y
}

// along folds the middle axis of [outer length inner].
func along(x []float64, outer, length, inner int, f func(a, b float64) float64) []float64 {
	y := make([]float64, outer*inner)
	for i := range y {
		at := i/inner*length*inner + i%inner
		y[i] = x[at]
		for k := 1; k < length; k++ {
			y[i] = f(y[i], x[at+k*inner])
		}
	}
	return y
}

// cooked makes a row's graph: the loss is the sum of the output times arbitrary numbers.
func (r row) cooked() (y, loss *gorgonia.Node, inputs gorgonia.Nodes) {
	in := &inputsOf{g: gorgonia.NewGraph(), numbers: rand.New(rand.NewPCG(3, 4)), positive: r.positive}
	y = r.make(in)
	loss = y
	if !y.IsScalar() {
		weights := make([]float64, y.Shape().TotalSize())
		for i := range weights {
			weights[i] = in.numbers.NormFloat64()
		}
		w := gorgonia.NewConstant(dense.New(dense.WithShape(y.Shape()...), dense.WithBacking(weights)), gorgonia.WithName("weights"))
		loss = must(gorgonia.HadamardProd(y, w))
		loss = must(gorgonia.Sum(loss))
	}
	return y, loss, in.all
}

// Every op has the value of Gorgonia's op, or the right one where that is wrong, and its gradient
// agrees with finite differences. Where Gorgonia is known to be wrong, it must still be.
func TestOps(t *testing.T) {
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			y, loss, inputs := r.cooked()
			var values [][]float64
			for _, n := range inputs {
				values = append(values, floatsOf(n.Value()))
			}
			want := []float64(nil)
			theirs, err := naive(y.Graph())
			if err == nil {
				want = numbers(t, theirs[y])
			}
			if r.value != nil {
				if right := r.value(values); r.defect == "value" && nearly(want, right, 1e-12) == nil {
					t.Error("Gorgonia's value is right now")
				}
				want = r.value(values)
			}
			got, gradients, differences := byDifferences(t, y, loss, inputs)
			if err := nearly(got, want, 1e-12); err != nil {
				t.Errorf("value: %v", err)
			}
			for i := range inputs {
				if err := nearly(gradients[i], differences[i], 2e-7); err != nil {
					t.Errorf("gradient of input %d: %v", i, err)
				}
			}
			_, again, parameters := r.cooked()
			var their stepped
			caught := attempt(func() {
				if _, err := gorgonia.Grad(again, parameters...); err != nil {
					panic(err)
				}
				their = onNaive(panicking{}, again, parameters)
			})
			wrong := caught != nil
			for i := range their.gradients {
				wrong = wrong || nearly(their.gradients[i], gradients[i], 1e-10) != nil
			}
			if wrong != (r.defect == "gradient") && r.defect != "value" {
				t.Errorf("Gorgonia's gradient is wrong: %v (%v)", wrong, caught)
			}
		})
	}
}

func nearly(got, want []float64, rel float64) error {
	var failure error
	if caught := attempt(func() {
		wantStep(panicking{}, "", stepped{gradients: [][]float64{got}}, stepped{gradients: [][]float64{want}}, 0, rel)
	}); caught != nil {
		failure = caught.(error)
	}
	return failure
}

// byDifferences returns a node's value, the gradients of the loss by the inputs, and their finite
// differences, from a graph that was adopted without Grad.
func byDifferences(t *testing.T, y, loss *gorgonia.Node, inputs gorgonia.Nodes) (value []float64, gradients, differences [][]float64) {
	t.Helper()
	b := graph.New(tensor.Float64)
	adopted := Adopt(b, nil, y, loss)
	var parameters []*graph.Node
	for _, n := range inputs {
		for _, p := range b.Parameters() {
			if p.Name() == givenName(n) {
				parameters = append(parameters, p)
			}
		}
	}
	keeps := outputs{b: b, names: map[*graph.Node]string{}}
	var names []string
	for _, n := range append(b.Gradients(adopted[1], parameters...), adopted...) {
		names = append(names, keeps.keep(n))
	}
	err := b.OnHost(graph.LoadOptions{}, func(s *graph.Session) error {
		read := func(name string, elements int) []float64 {
			var raw rawValues
			if err := raw.read(s, name, elements); err != nil {
				t.Fatal(err)
			}
			return raw.f64
		}
		at := func(name string, values []float64) float64 {
			if err := graph.Write(s, name, 0, 0, values); err != nil {
				t.Fatal(err)
			}
			if err := s.Run(1); err != nil {
				t.Fatal(err)
			}
			return read(names[len(names)-1], 1)[0]
		}
		if err := s.Run(1); err != nil {
			return err
		}
		value = read(names[len(inputs)], y.Shape().TotalSize())
		for i, n := range inputs {
			gradients = append(gradients, read(names[i], n.Shape().TotalSize()))
		}
		const h = 1e-5
		for _, n := range inputs {
			values, slopes := floatsOf(n.Value()), make([]float64, n.Shape().TotalSize())
			for i, v := range values {
				values[i] = v + h
				above := at(givenName(n), values)
				values[i] = v - h
				below := at(givenName(n), values)
				values[i] = v
				slopes[i] = (above - below) / (2 * h)
			}
			at(givenName(n), values)
			differences = append(differences, slopes)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return value, gradients, differences
}
