package stock

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"gorgonia.org/gorgonia"
	dense "gorgonia.org/tensor"
	"pgregory.net/rapid"

	"github.com/pollen-ml/pollen/graph"
	_ "github.com/pollen-ml/pollen/internal/fixedseed"
	"github.com/pollen-ml/pollen/internal/testenv"
	"github.com/pollen-ml/pollen/tensor"
)

// recipe is a list of choices, from which the same graph can be made repeatedly.
type recipe struct {
	choices []int
	next    int
}

// upTo returns a number from 0 to n-1.
func (r *recipe) upTo(n int) int {
	r.next++
	return r.choices[(r.next-1)%len(r.choices)] % n
}

// kitchen makes a random graph of stock ops.
type kitchen struct {
	*recipe
	g          *gorgonia.ExprGraph
	nodes      gorgonia.Nodes
	parameters gorgonia.Nodes
	numbers    *rand.Rand
}

// The sizes of all images.
const (
	batch    = 2
	channels = 4
)

func (k *kitchen) input(shape ...int) *gorgonia.Node {
	values := make([]float64, dense.Shape(shape).TotalSize())
	for i := range values {
		values[i] = k.numbers.NormFloat64() * 0.8
	}
	name := fmt.Sprintf("p%d", len(k.parameters))
	n := gorgonia.NewTensor(k.g, dense.Float64, len(shape), gorgonia.WithShape(shape...), gorgonia.WithName(name),
		gorgonia.WithValue(dense.New(dense.WithShape(shape...), dense.WithBacking(values))))
	k.parameters = append(k.parameters, n)
	k.nodes = append(k.nodes, n)
	return n
}

// pick returns a node whose shape fits, or a new input of the shape otherwise, always if no node
// fits.
func (k *kitchen) pick(fits func(s dense.Shape) bool, otherwise ...int) *gorgonia.Node {
	var list gorgonia.Nodes
	for _, n := range k.nodes {
		if fits(n.Shape()) {
			list = append(list, n)
		}
	}
	if len(list) == 0 || k.upTo(6) == 0 {
		return k.input(otherwise...)
	}
	return list[k.upTo(len(list))]
}

func (k *kitchen) image() *gorgonia.Node {
	return k.pick(func(s dense.Shape) bool { return len(s) == 4 && s[2] >= 4 && s[3] >= 4 && s[2] <= 8 && s[3] <= 8 }, batch, channels, 6, 5)
}

func (k *kitchen) matrix() *gorgonia.Node {
	return k.pick(func(s dense.Shape) bool { return len(s) == 2 && s[0] > 1 && s[1] > 1 && s.TotalSize() < 400 }, 3, 4)
}

func (k *kitchen) any() *gorgonia.Node {
	return k.pick(func(s dense.Shape) bool { return s.TotalSize() > 1 }, 3, 4)
}

func (k *kitchen) like(x *gorgonia.Node) *gorgonia.Node {
	return k.pick(func(s dense.Shape) bool { return s.Eq(x.Shape()) }, x.Shape()...)
}

// axis returns an axis along which Gorgonia sums correctly: with four axes or more, one of the
// first two or the last.
func (k *kitchen) axis(x *gorgonia.Node) int {
	if axis := k.upTo(x.Dims()); axis < 2 {
		return axis
	}
	return x.Dims() - 1
}

func (k *kitchen) constant() *gorgonia.Node { return gorgonia.NewConstant(0.25 + float64(k.upTo(4))/2) }

func must(n *gorgonia.Node, err error) *gorgonia.Node { return gorgonia.Must(n, err) }

// positive returns 0.5 + x^2.
func (k *kitchen) positive(x *gorgonia.Node) *gorgonia.Node {
	return must(gorgonia.Add(must(gorgonia.Square(x)), gorgonia.NewConstant(0.5)))
}

// dishes make the ops, each with operands for which it is safe.
var dishes = []func(k *kitchen) *gorgonia.Node{
	func(k *kitchen) *gorgonia.Node {
		x, size := k.image(), 1+k.upTo(3)
		w := k.pick(func(s dense.Shape) bool { return len(s) == 4 && s[1] == x.Shape()[1] && s[2] == size && s[3] == size }, 1+k.upTo(4), x.Shape()[1], size, size)
		return must(gorgonia.Conv2d(x, w, dense.Shape{size, size}, []int{k.upTo(2), k.upTo(2)}, []int{1 + k.upTo(2), 1}, []int{1, 1 + k.upTo(2)}))
	},
	func(k *kitchen) *gorgonia.Node {
		x := k.image()
		return must(gorgonia.BroadcastAdd(x, k.input(1, x.Shape()[1], 1, 1), nil, []byte{0, 2, 3}))
	},
	func(k *kitchen) *gorgonia.Node {
		x := k.image()
		return must(gorgonia.BroadcastHadamardProd(k.input(1, x.Shape()[1], 1, 1), x, []byte{0, 2, 3}, nil))
	},
	func(k *kitchen) *gorgonia.Node {
		return must(gorgonia.MaxPool2D(k.image(), dense.Shape{2, 1 + k.upTo(3)}, []int{0, 0}, []int{1 + k.upTo(2), 1 + k.upTo(2)}))
	},
	func(k *kitchen) *gorgonia.Node {
		x := k.image()
		return must(gorgonia.Reshape(x, dense.Shape{x.Shape()[0], x.Shape().TotalSize() / x.Shape()[0]}))
	},
	func(k *kitchen) *gorgonia.Node { return must(gorgonia.Transpose(k.image(), 0, 2, 3, 1)) },
	func(k *kitchen) *gorgonia.Node { return must(gorgonia.Upsample2D(k.image(), 2)) },
	func(k *kitchen) *gorgonia.Node {
		x := k.matrix()
		return must(gorgonia.Mul(x, k.input(x.Shape()[1], 2+k.upTo(3))))
	},
	func(k *kitchen) *gorgonia.Node {
		x := k.matrix()
		y := k.pick(func(s dense.Shape) bool { return len(s) == 2 && s[0] == x.Shape()[1] && s[1] > 1 && s[1] < 40 }, x.Shape()[1], 3)
		return must(gorgonia.Mul(x, y))
	},
	func(k *kitchen) *gorgonia.Node {
		x := k.matrix()
		return must(gorgonia.Mul(x, must(gorgonia.Transpose(k.input(3, x.Shape()[1])))))
	},
	func(k *kitchen) *gorgonia.Node {
		x := k.matrix()
		return must(gorgonia.Mul(x, k.input(x.Shape()[1])))
	},
	func(k *kitchen) *gorgonia.Node { x := k.input(4); return must(gorgonia.Mul(x, k.input(4))) },
	func(k *kitchen) *gorgonia.Node {
		return must(gorgonia.BatchedMatMul(k.input(3, 2, 4), k.input(3, 4, 5)))
	},
	func(k *kitchen) *gorgonia.Node {
		x := k.matrix()
		return must(gorgonia.BroadcastAdd(x, k.input(1, x.Shape()[1]), nil, []byte{0}))
	},
	func(k *kitchen) *gorgonia.Node {
		x := k.matrix()
		return must(gorgonia.BroadcastSub(x, k.input(x.Shape()[0], 1), nil, []byte{1}))
	},
	func(k *kitchen) *gorgonia.Node { return must(gorgonia.Rectify(k.any())) },
	func(k *kitchen) *gorgonia.Node { return must(gorgonia.LeakyRelu(k.any(), 0.1)) },
	func(k *kitchen) *gorgonia.Node { return must(gorgonia.Tanh(k.any())) },
	func(k *kitchen) *gorgonia.Node { return must(gorgonia.Sigmoid(must(gorgonia.Tanh(k.any())))) },
	func(k *kitchen) *gorgonia.Node { return must(gorgonia.Softplus(must(gorgonia.Tanh(k.any())))) },
	func(k *kitchen) *gorgonia.Node { return must(gorgonia.Exp(must(gorgonia.Tanh(k.any())))) },
	func(k *kitchen) *gorgonia.Node { return must(gorgonia.Log(k.positive(k.any()))) },
	func(k *kitchen) *gorgonia.Node { return must(gorgonia.Sqrt(k.positive(k.any()))) },
	func(k *kitchen) *gorgonia.Node { return must(gorgonia.Inverse(k.positive(k.any()))) },
	func(k *kitchen) *gorgonia.Node { return must(gorgonia.Cube(must(gorgonia.Tanh(k.any())))) },
	func(k *kitchen) *gorgonia.Node { return must(gorgonia.Square(must(gorgonia.Tanh(k.any())))) },
	func(k *kitchen) *gorgonia.Node { return must(gorgonia.Abs(k.any())) },
	func(k *kitchen) *gorgonia.Node { return must(gorgonia.Neg(k.any())) },
	func(k *kitchen) *gorgonia.Node { return must(gorgonia.Expm1(must(gorgonia.Tanh(k.any())))) },
	func(k *kitchen) *gorgonia.Node {
		return must(gorgonia.Log1p(must(gorgonia.Square(must(gorgonia.Tanh(k.any()))))))
	},
	func(k *kitchen) *gorgonia.Node { x := k.any(); return must(gorgonia.Add(x, k.like(x))) },
	func(k *kitchen) *gorgonia.Node { x := k.any(); return must(gorgonia.Sub(x, k.like(x))) },
	func(k *kitchen) *gorgonia.Node {
		x := must(gorgonia.Tanh(k.any()))
		return must(gorgonia.HadamardProd(x, must(gorgonia.Tanh(k.like(x)))))
	},
	func(k *kitchen) *gorgonia.Node {
		x := k.any()
		return must(gorgonia.HadamardDiv(x, k.positive(k.like(x))))
	},
	func(k *kitchen) *gorgonia.Node { return must(gorgonia.Add(k.any(), k.constant())) },
	func(k *kitchen) *gorgonia.Node { return must(gorgonia.Sub(k.constant(), k.any())) },
	func(k *kitchen) *gorgonia.Node { return must(gorgonia.Mul(k.constant(), k.any())) },
	func(k *kitchen) *gorgonia.Node { return must(gorgonia.HadamardDiv(k.any(), k.constant())) },
	func(k *kitchen) *gorgonia.Node {
		return must(gorgonia.Pow(k.positive(must(gorgonia.Tanh(k.any()))), k.constant()))
	},
	func(k *kitchen) *gorgonia.Node {
		x := k.any()
		return must(gorgonia.HadamardProd(x, must(gorgonia.Gt(x, gorgonia.NewConstant(0.1), true))))
	},
	func(k *kitchen) *gorgonia.Node { x := k.any(); return must(gorgonia.Sum(x, k.axis(x))) },
	func(k *kitchen) *gorgonia.Node { x := k.any(); return must(gorgonia.Mean(x, k.axis(x))) },
	func(k *kitchen) *gorgonia.Node { return must(gorgonia.SoftMax(k.matrix())) },
	func(k *kitchen) *gorgonia.Node { return must(gorgonia.LogSoftMax(k.matrix())) },
	func(k *kitchen) *gorgonia.Node {
		x := k.matrix()
		return must(gorgonia.Concat(0, x, k.input(2, x.Shape()[1])))
	},
	func(k *kitchen) *gorgonia.Node { return must(gorgonia.Slice(k.matrix(), gorgonia.S(0, 2))) },
	func(k *kitchen) *gorgonia.Node { return must(gorgonia.Slice(k.matrix(), nil, gorgonia.S(1))) },
	func(k *kitchen) *gorgonia.Node { return must(gorgonia.Max(k.matrix(), k.upTo(2))) },
}

// cook makes a graph: some ops, and a loss that depends on all nodes without a user.
func cook(choices []int) (loss *gorgonia.Node, parameters gorgonia.Nodes) {
	k := &kitchen{recipe: &recipe{choices: choices}, g: gorgonia.NewGraph(), numbers: rand.New(rand.NewPCG(1, uint64(choices[0])))}
	used := map[*gorgonia.Node]bool{}
	for range 2 + k.upTo(9) {
		n := dishes[k.upTo(len(dishes))](k)
		for _, other := range k.nodes {
			used[other] = used[other] || n == other
		}
		k.nodes = append(k.nodes, n)
	}
	s, err := surveyOf(k.g)
	if err != nil {
		panic(err)
	}
	for i, n := range k.nodes {
		if len(s.info[n].users) > 0 || i < len(k.nodes)-1 && k.nodes[i+1] == n {
			continue
		}
		term := n
		if !n.IsScalar() {
			term = must(gorgonia.Mean(must(gorgonia.Tanh(n))))
		}
		if loss == nil {
			loss = term
		} else if loss != term {
			loss = must(gorgonia.Add(loss, term))
		}
	}
	reached := map[*gorgonia.Node]bool{}
	if s, err = surveyOf(k.g); err != nil {
		panic(err)
	}
	s.reach(reached, loss)
	for _, p := range k.parameters {
		if reached[p] {
			parameters = append(parameters, p)
		}
	}
	return loss, parameters
}

// attempt calls f, which may panic, as Gorgonia does, and returns the value of the panic.
func attempt(f func()) (caught any) {
	defer func() { caught = recover() }()
	f()
	return nil
}

// Random graphs have the same loss and gradients when Gorgonia's ops compute them one by one, when
// a Machine runs them, and when they are adopted into a builder without Grad; also on a
// TapeMachine, where that is not wrong.
func TestRandomGraphs(t *testing.T) {
	made, unmade, wrongTapes := 0, 0, 0
	tries, least := 120, 100
	if testenv.All(t) {
		tries, least = 520, 500
	}
	if testing.Short() { // rapid tries a fifth of them
		least /= 5
	}
	if err := flag.Set("rapid.checks", strconv.Itoa(tries)); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(r *rapid.T) {
		choices := rapid.SliceOfN(rapid.IntRange(0, 1<<20), 48, 48).Draw(r, "choices")
		var loss *gorgonia.Node
		var parameters gorgonia.Nodes
		var want stepped
		if caught := attempt(func() {
			loss, parameters = cook(choices)
			if _, err := gorgonia.Grad(loss, parameters...); err != nil {
				panic(err)
			}
			want = onNaive(panicking{}, loss, parameters)
		}); caught != nil {
			unmade++
			t.Log(caught)
			return
		}
		made++
		wantStep(r, "machine", onMachine(r, Options{}, loss, parameters), want, 1e-12, 1e-10)
		if differs(onTapeOrNothing(loss, parameters), want) {
			wrongTapes++
		}
		plain, inputs := cook(choices)
		wantStep(r, "adopted", onBuilder(r, plain, inputs), want, 1e-12, 1e-10)
	})
	t.Logf("%d graphs; %d that Gorgonia could not make or run; %d that its TapeMachine had wrong", made, unmade, wrongTapes)
	if made < least {
		t.Errorf("%d graphs, want %d", made, least)
	}
}

// onTapeOrNothing returns the result of a TapeMachine, or nil if it fails.
func onTapeOrNothing(loss *gorgonia.Node, parameters gorgonia.Nodes) (out *stepped) {
	attempt(func() {
		var value gorgonia.Value
		gorgonia.Read(loss, &value)
		vm := gorgonia.NewTapeMachine(loss.Graph())
		defer vm.Close()
		if err := vm.RunAll(); err != nil {
			panic(err)
		}
		got := stepped{loss: floatsOf(value)[0]}
		for _, p := range parameters {
			got.gradients = append(got.gradients, floatsOf(p.Deriv().Value()))
		}
		out = &got
	})
	return out
}

func differs(got *stepped, want stepped) bool {
	if got == nil || len(got.gradients) != len(want.gradients) {
		return true
	}
	return attempt(func() { wantStep(panicking{}, "", *got, want, 1e-12, 1e-10) }) != nil
}

// onBuilder adopts a loss whose Grad has not been called.
func onBuilder(t failing, loss *gorgonia.Node, parameters gorgonia.Nodes) (out stepped) {
	t.Helper()
	b := graph.New(tensor.Float64)
	adopted := Adopt(b, nil, loss)[0]
	if b.Err() != nil {
		t.Fatalf("%v", b.Err())
	}
	var inputs []*graph.Node
	for _, p := range parameters {
		for _, n := range b.Parameters() {
			if n.Name() == givenName(p) {
				inputs = append(inputs, n)
			}
		}
	}
	if len(graph.ShapeOf(adopted)) > 0 {
		t.Fatalf("the loss has shape %v", graph.ShapeOf(adopted))
	}
	names := outputs{b: b, names: map[*graph.Node]string{}}
	gradients := b.Gradients(adopted, inputs...)
	names.keep(adopted)
	for _, g := range gradients {
		names.keep(g)
	}
	err := b.OnHost(graph.LoadOptions{}, func(s *graph.Session) error {
		if err := s.Run(1); err != nil {
			return err
		}
		var raw rawValues
		if err := raw.read(s, names.names[adopted], 1); err != nil {
			return err
		}
		out.loss = raw.f64[0]
		for i, g := range gradients {
			var raw rawValues
			if err := raw.read(s, names.names[g], parameters[i].Shape().TotalSize()); err != nil {
				return err
			}
			out.gradients = append(out.gradients, raw.f64)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return out
}
