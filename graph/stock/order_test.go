package stock

import (
	"math/rand/v2"
	"testing"

	"gorgonia.org/gorgonia"
	dense "gorgonia.org/tensor"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// orders makes 2x3 tensors whose elements are in different orders in memory.
var orders = map[string]func(dtype dense.Dtype) *dense.Dense{
	"rows": func(dtype dense.Dtype) *dense.Dense { return arbitrary(dtype, 2, 3) },
	"AsFortran": func(dtype dense.Dtype) *dense.Dense {
		return dense.New(dense.WithShape(2, 3), dense.AsFortran(arbitrary(dtype, 6).Data()))
	},
	"T without Transpose": func(dtype dense.Dtype) *dense.Dense { return transposed(arbitrary(dtype, 3, 2)) },
	"T with Transpose": func(dtype dense.Dtype) *dense.Dense {
		d := transposed(arbitrary(dtype, 3, 2))
		if err := d.Transpose(); err != nil {
			panic(err)
		}
		return d
	},
	"slice of rows":             func(dtype dense.Dtype) *dense.Dense { return cut(arbitrary(dtype, 5, 3), gorgonia.S(1, 3)) },
	"slice of columns":          func(dtype dense.Dtype) *dense.Dense { return cut(arbitrary(dtype, 2, 5), nil, gorgonia.S(1, 4)) },
	"slice of every second":     func(dtype dense.Dtype) *dense.Dense { return cut(arbitrary(dtype, 2, 6), nil, gorgonia.S(0, 6, 2)) },
	"plane of three axes":       func(dtype dense.Dtype) *dense.Dense { return cut(arbitrary(dtype, 2, 3, 4), nil, nil, gorgonia.S(1)) },
	"slice of a transposed one": func(dtype dense.Dtype) *dense.Dense { return cut(transposed(arbitrary(dtype, 3, 4)), gorgonia.S(1, 3)) },
	"slice of a column-major one": func(dtype dense.Dtype) *dense.Dense {
		return cut(dense.New(dense.WithShape(4, 5), dense.AsFortran(arbitrary(dtype, 20).Data())), gorgonia.S(1, 3), gorgonia.S(1, 4))
	},
}

func arbitrary(dtype dense.Dtype, shape ...int) *dense.Dense {
	numbers := rand.New(rand.NewPCG(5, 6))
	d := dense.New(dense.WithShape(shape...), dense.Of(dtype))
	for i := range shape[0] * d.Strides()[0] {
		if dtype == dense.Float32 {
			d.Set(i, numbers.Float32())
		} else {
			d.Set(i, numbers.Float64())
		}
	}
	return d
}

func transposed(d *dense.Dense) *dense.Dense {
	if err := d.T(); err != nil {
		panic(err)
	}
	return d
}

func cut(d *dense.Dense, slices ...dense.Slice) *dense.Dense {
	view, err := d.Slice(slices...)
	if err != nil {
		panic(err)
	}
	return view.(*dense.Dense)
}

// elements returns the elements of a 2x3 tensor, read by Gorgonia's At.
func elements(t *testing.T, v gorgonia.Value) (list []float64) {
	t.Helper()
	for i := range 6 {
		element, err := v.(*dense.Dense).At(i/3, i%3)
		if err != nil {
			t.Fatal(err)
		}
		switch element := element.(type) {
		case float32:
			list = append(list, float64(element))
		case float64:
			list = append(list, element)
		}
	}
	return list
}

// Inputs, parameters, constants, and gradients that exist before a run are read in Gorgonia's order
// of elements, whatever their order in memory.
func TestOrderInMemory(t *testing.T) {
	for name, order := range orders {
		for _, dtype := range []dense.Dtype{dense.Float32, dense.Float64} {
			t.Run(name+" "+dtype.String(), func(t *testing.T) {
				square, err := dense.Square(order(dtype))
				if err != nil {
					t.Fatal(err)
				}
				want := elements(t, square)
				node := func(value gorgonia.Value) *gorgonia.Node {
					return gorgonia.NewMatrix(gorgonia.NewGraph(), dtype, gorgonia.WithShape(2, 3), gorgonia.WithName("x"), gorgonia.WithValue(value))
				}
				check := func(what string, got []float64) {
					t.Helper()
					if err := nearly(got, want, 1e-7); err != nil {
						t.Errorf("%s: %v", what, err)
					}
				}

				x := node(order(dtype))
				gorgonia.WithGrad(order(dtype))(x)
				y := must(gorgonia.Square(x))
				if _, err := gorgonia.Grad(must(gorgonia.Sum(must(gorgonia.HadamardProd(y, x)))), x); err != nil {
					t.Fatal(err)
				}
				var read gorgonia.Value
				gorgonia.Read(y, &read)
				vm := NewMachine(x.Graph(), Options{})
				defer vm.Close()
				if err := vm.RunAll(); err != nil {
					t.Fatal(err)
				}
				check("input", elements(t, read))
				gradient, err := x.Grad()
				if err != nil {
					t.Fatal(err)
				}
				check("gradient", mapped(elements(t, gradient), func(v float64) float64 { return v / 3 }))

				check("parameter", adopted(t, must(gorgonia.Square(node(order(dtype))))))

				constant := gorgonia.NewConstant(order(dtype))
				once := must(gorgonia.HadamardProd(node(dense.Ones(dtype, 2, 3)), constant))
				check("constant", adopted(t, must(gorgonia.HadamardProd(once, constant))))
			})
		}
	}
}

// adopted returns a node's value in an adopted graph, which starts from the stock graph's present
// values.
func adopted(t *testing.T, n *gorgonia.Node) []float64 {
	t.Helper()
	b := graph.New(tensor.Float64)
	keeps := outputs{b: b, names: map[*graph.Node]string{}}
	name := keeps.keep(Adopt(b, nil, n)[0])
	var raw rawValues
	err := b.OnHost(graph.LoadOptions{}, func(s *graph.Session) error {
		if err := s.Run(1); err != nil {
			return err
		}
		return raw.read(s, name, n.Shape().TotalSize())
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw.f64
}

// A builder may have the constants and the running statistics of several stock graphs.
func TestAdoptSeveralGraphs(t *testing.T) {
	b := graph.New(tensor.Float64)
	for _, name := range []string{"first", "second"} {
		g := newBench()
		x, ones := g.weights(name, 2, 3, 4, 4), gorgonia.NewConstant(dense.Ones(dense.Float64, 2, 3, 4, 4))
		y, _, _, normal, err := gorgonia.BatchNorm(x, ones, ones, 0.1, 1e-5)
		if err != nil {
			t.Fatal(err)
		}
		if err := normal.SetTraining(false); err != nil {
			t.Fatal(err)
		}
		if Adopt(b, nil, y); b.Err() != nil {
			t.Errorf("%s graph: %v", name, b.Err())
		}
	}
}

func TestAdoptNil(t *testing.T) {
	x := newBench().weights("x", 3)
	for _, c := range []struct {
		places  map[*gorgonia.Node]*graph.Node
		outputs gorgonia.Nodes
	}{
		{outputs: gorgonia.Nodes{x, nil}}, {outputs: gorgonia.Nodes{nil}},
		{places: map[*gorgonia.Node]*graph.Node{nil: nil}, outputs: gorgonia.Nodes{x}},
	} {
		b := graph.New(tensor.Float64)
		Adopt(b, c.places, c.outputs...)
		wantError(t, b.Err(), "stock: adopt", "nil")
	}
}
