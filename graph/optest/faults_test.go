package optest

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// fault is the mistake of a faulty op.
type fault int

const (
	nothing fault = iota
	wrongOutput
	wrongFactor      // of the gradient
	missingElement   // of the gradient
	unwritten        // the last element
	fromUnwritten    // a sum that starts from the output's old contents
	beyondEnd        // one element too many
	beforeStart      // likewise
	inputChanged     // which the launch says it reads
	dirtyWorkspace   // taken for zeros
	dirtyPrivate     // likewise
	threadDependent  // a sum in the order of arrival
	stateful         // another rounding every other time
	allocating       // in each step
	onlyFloat32Wrong // where finite differences do not look
)

// faulty is y = 2 x, with something wrong. Its fields make it comparable, as ops are.
type faulty struct {
	fault fault
	calls *atomic.Int64
}

func (faulty) Name() string                                    { return "faulty" }
func (f faulty) Shape(in []tensor.Shape) (tensor.Shape, error) { return in[0], nil }

func (f faulty) Lower(l *graph.Lowering) {
	n := l.Shape.Elements()
	run := graph.Pick(l, f.run32, f.run64)
	host := tensor.HostKernel{Workspace: 8 * n, Private: 8 * n, Phases: []tensor.Phase{{Tiles: 1, Run: func(a *tensor.Args, _ int) { run(a) }}}}
	arguments := []tensor.Argument{l.Out(), l.In(0)}
	if f.fault == threadDependent {
		add := graph.Pick(l, lateFirst[float32](), lateFirst[float64]())
		host.Phases = append(host.Phases, tensor.Phase{Tiles: 2, Run: add})
	}
	l.Emit("faulty_fwd", tensor.Threads(n), host, arguments...)
}

func (f faulty) run32(a *tensor.Args) {
	doubled[float32](f, a)
	if f.fault == onlyFloat32Wrong {
		tensor.Slice[float32](a, 0)[0]++
	}
}

func (f faulty) run64(a *tensor.Args) { doubled[float64](f, a) }

var kept atomic.Pointer[[]byte] // keeps the compiler from removing an allocation

func doubled[T float32 | float64](f faulty, a *tensor.Args) {
	y, x := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1)
	last := len(y) - 1
	was := y[last]
	for i, v := range x {
		y[i] = 2 * v
	}
	beside := func(i int) *T { // memory outside the slices
		return (*T)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(y)), i*int(unsafe.Sizeof(y[0]))))
	}
	calls := f.calls.Add(1)
	switch f.fault {
	case wrongOutput:
		y[last] *= 1.001
	case unwritten:
		y[last] = was
	case fromUnwritten:
		y[last] = was + y[last] - was
	case beyondEnd:
		*beside(last + 1) = 1
	case beforeStart:
		*beside(-1) = 1
	case inputChanged:
		x[last]++
	case dirtyWorkspace:
		y[last] += tensor.Workspace[T](a)[last]
	case dirtyPrivate:
		y[last] += tensor.Private[T](a)[last]
	case stateful:
		if calls%2 == 0 {
			y[last] *= 1 + T(Epsilon(tensor.DTypeOf[T]()))
		}
	case allocating:
		kept.Store(new([]byte))
	}
}

// lateFirst is a phase of two tiles, in which tile 0 waits a while for tile 1. One adds 1 to the
// elements, the other -1: the rounded result depends on the order.
func lateFirst[T float32 | float64]() func(a *tensor.Args, tile int) {
	var mu sync.Mutex
	var signal chan struct{}
	return func(a *tensor.Args, tile int) {
		mu.Lock()
		if signal == nil {
			signal = make(chan struct{}, 1)
		}
		mu.Unlock()
		if tile == 0 {
			select {
			case <-signal:
			case <-time.After(200 * time.Millisecond):
			}
		}
		mu.Lock()
		y := tensor.Slice[T](a, 0)
		for i := range y {
			y[i] += T(1 - 2*tile)
		}
		mu.Unlock()
		if tile == 1 {
			select {
			case signal <- struct{}{}:
			default:
			}
		}
	}
}

func (f faulty) Gradients(b *graph.Builder, _ []*graph.Node, _, dout *graph.Node) []*graph.Node {
	return []*graph.Node{b.Apply(faultyBackward{f.fault}, dout)}
}

// faultyBackward is dx = 2 dout, with something wrong.
type faultyBackward struct{ fault fault }

func (faultyBackward) Name() string                                    { return "faulty gradient" }
func (f faultyBackward) Shape(in []tensor.Shape) (tensor.Shape, error) { return in[0], nil }

func (f faultyBackward) Lower(l *graph.Lowering) {
	run := graph.Pick(l, tripled[float32](f.fault), tripled[float64](f.fault))
	l.Emit("faulty_bwd", tensor.Threads(l.Shape.Elements()), tensor.Single(run), l.Out(), l.In(0))
}

func tripled[T float32 | float64](f fault) func(a *tensor.Args) {
	return func(a *tensor.Args) {
		dx, dout := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1)
		factor := T(2)
		if f == wrongFactor {
			factor = 2.001
		}
		for i, v := range dout {
			dx[i] = factor * v
		}
		if f == missingElement {
			dx[len(dx)/2] = 0
		}
	}
}

func TestFaultsAreFound(t *testing.T) {
	for _, test := range []struct {
		name  string
		fault fault
		want  string // in the error
	}{
		{"nothing", nothing, ""},
		{"wrong output", wrongOutput, "output: optest: close: 1 of 33"},
		{"wrong factor of the gradient", wrongFactor, "finite differences, direction 0"},
		{"missing element of the gradient", missingElement, "finite differences"},
		{"unwritten element", unwritten, "got NaN"},
		{"sum onto the output's old value", fromUnwritten, "got NaN"},
		{"write beyond the end", beyondEnd, "behind the last of faulty"},
		{"write before the start", beforeStart, "bytes before faulty"},
		{"changed input", inputChanged, "of x0"},
		{"dirty workspace", dirtyWorkspace, "got NaN"},
		{"dirty private memory", dirtyPrivate, "got NaN"},
		{"sum in the order of arrival", threadDependent, "bits of"},
		{"another rounding every other time", stateful, "bits of"},
		{"allocation", allocating, "must not allocate"},
		{"only float32", onlyFloat32Wrong, "float32: step 0, output: optest: close: 1 of 33"},
	} {
		t.Run(test.name, func(t *testing.T) {
			host := tensor.NewHost(2)
			defer host.Close()
			c := Case{
				Name: test.name, Op: faulty{test.fault, new(atomic.Int64)}, Inputs: []Input{Float(Normal, 33)}, Terms: 1,
				Naive: func(in [][]float64) []float64 {
					y := make([]float64, len(in[0]))
					for i, v := range in[0] {
						y[i] = 2 * v
					}
					return y
				},
			}
			switch err := c.check(host); {
			case test.want == "" && err != nil:
				t.Errorf("got %v, want no error", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestRowsAreChecked(t *testing.T) {
	host := tensor.NewHost(1)
	defer host.Close()
	good := func() Case {
		return Case{
			Name: "good", Op: op.ReLU{}, Inputs: []Input{Float(Distinct, 31)}, Terms: 1,
			Naive: func(in [][]float64) []float64 { return naiveReLU(in[0]) },
		}
	}
	for _, test := range []struct {
		name, want string
		change     func(c *Case)
	}{
		{"good", "", func(*Case) {}},
		{"no naive loop", "must have a name, an op", func(c *Case) { c.Naive = nil }},
		{"no terms", "Terms", func(c *Case) { c.Terms = 0 }},
		{"looser without a reason", "Loosen and Reason", func(c *Case) { c.Loosen = 2 }},
		{"speed without flops", "Flops", func(c *Case) { c.Speed = true }},
		{"no gradient, and not said", "NoGradient", func(c *Case) { c.Op = op.Moments{} }},
		{"another kernel", `"relu_fwd_f32"`, func(c *Case) { c.Kernel = "elu_fwd" }},
		{"wrong shape", "graph: max pool", func(c *Case) { c.Op = op.MaxPool2D{} }},
		{"naive loop of another length", "got 31 elements, want 30", func(c *Case) {
			c.Naive = func(in [][]float64) []float64 { return in[0][1:] }
		}},
		{"an input of unknown type", "got DType(9)", func(c *Case) {
			c.Inputs[0].DType = tensor.DType(9)
		}},
	} {
		c := good()
		test.change(&c)
		switch err := c.check(host); {
		case test.want == "" && err != nil:
			t.Errorf("%s: got %v, want no error", test.name, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: got %v, want an error with %q", test.name, err, test.want)
		}
	}
}
