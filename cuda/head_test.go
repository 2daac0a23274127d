package cuda_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/cudatest"
	"github.com/pollen-ml/pollen/cuda/internal/plan"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/optest"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// headCase is a classifier with a hidden layer.
type headCase struct {
	name                          string
	batch, inputs, width, classes int
	hidden                        graph.Op // the activation after the hidden layer
	noBias                        bool     // of either layer
	sums                          bool     // the hidden layer's product has slices
	deviation                     float64  // of weights; a large one gives probabilities of 0
}

var headCases = []headCase{
	{name: "hidden layer", batch: 23, inputs: 40, width: 100, classes: 10, hidden: op.ReLU{}, deviation: 0.3},
	{name: "slices", batch: 37, inputs: 1900, width: 68, classes: 10, hidden: op.ReLU{}, sums: true, deviation: 0.1},
	{name: "odd width, certain", batch: 7, inputs: 35, width: 135, classes: 3, hidden: op.ReLU{}, deviation: 4},
	{name: "many classes, no ReLU", batch: 18, inputs: 40, width: 72, classes: 21, hidden: op.Tanh{}, noBias: true, deviation: 0.5},
	{name: "few examples, sixteen classes", batch: 5, inputs: 33, width: 1100, classes: 16, hidden: op.ReLU{}, deviation: 0.2},
}

// program returns a program whose outputs are the gradients of all parameters and the logits.
func (c headCase) program(t *testing.T) *graph.Program {
	t.Helper()
	b := graph.New(tensor.Float32)
	normal := func(seed uint64, chain uint32, stream uint16, _ tensor.Shape, values []float64) {
		random.Normals(values, 0, random.Address{Seed: seed, Chain: chain, Stream: stream})
		for i := range values {
			values[i] *= c.deviation
		}
	}
	linear := func(name string, x *graph.Node, inputs, outputs int) *graph.Node {
		y := b.Apply(op.MatMul{TransposeB: true}, x, b.Parameter(name+".weight", normal, outputs, inputs))
		if c.noBias {
			return y
		}
		return b.Apply(op.BiasAdd{}, y, b.Parameter(name+".bias", normal, outputs))
	}
	x := b.State("x", normal, c.batch, c.inputs)
	h := b.Apply(c.hidden, linear("first", x, c.inputs, c.width))
	logits := linear("last", h, c.width, c.classes)
	loss := b.Apply(op.CrossEntropy{}, logits, b.Data("labels", tensor.Int32, c.batch))
	for i, g := range b.Gradients(loss, b.Parameters()...) {
		b.Output(fmt.Sprint("gradient ", i), g)
	}
	b.Output("logits", logits)
	b.Record("loss", loss)
	program, err := b.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// run returns the outputs of each chain, one after the other.
func (c headCase) run(t *testing.T, program *graph.Program, device tensor.Device, chains int) (outputs [][]float64) {
	t.Helper()
	session, err := program.Load(device, graph.LoadOptions{Seed: 5, Chains: chains})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	labels := make([]int32, c.batch)
	for i := range labels {
		labels[i] = int32(i * i % c.classes)
	}
	if err := graph.Write(session, "labels", 0, 0, labels); err != nil {
		t.Fatal(err)
	}
	if err := session.Run(1); err != nil {
		t.Fatal(err)
	}
	for chain := range chains {
		var all []float64
		read := func(name string, size int) {
			values := make([]float32, size)
			if err := session.ReadFloats(name, chain, values); err != nil {
				t.Fatal(err)
			}
			for _, v := range values {
				all = append(all, float64(v))
			}
		}
		for i, p := range program.Parameters() {
			read(fmt.Sprint("gradient ", i), p.Shape.Elements())
		}
		read("logits", c.batch*c.classes)
		outputs = append(outputs, all)
	}
	return outputs
}

// TestHeads: the kernel that computes everything from the activations before a classifier's last
// layer to their gradient gives the same bits as the four kernels that it replaces, however many
// rows a block has, and the host's results up to rounding.
func TestHeads(t *testing.T) {
	host := tensor.NewHost(1)
	defer host.Close()
	device := &catching{Device: cudatest.GPU(t, cuda.Options{})}
	for _, c := range headCases {
		t.Run(c.name, func(t *testing.T) {
			program := c.program(t)
			const chains = 2
			want := c.run(t, program, host, chains)
			var separate [][]float64
			for i, rows := range []int{0, 1, 2, 8, 16} {
				plan.OnlyHead(t, rows)
				got := c.run(t, program, device, chains)
				symbols := cuda.Symbols(device.runner)
				begins := func(prefix string) bool {
					return slices.ContainsFunc(symbols, func(s string) bool { return strings.HasPrefix(s, prefix) })
				}
				if i == 0 {
					separate = got
					for chain := range want {
						if err := optest.Close(got[chain], want[chain], optest.SumTol(tensor.Float32, 100*c.inputs, want[chain])); err != nil {
							t.Errorf("chain %d: %v", chain, err)
						}
					}
					if begins("slices") != c.sums || begins("head") {
						t.Errorf("the calls are %v", symbols)
					}
					continue
				}
				// More rows than a block has threads or shared memory for.
				if tooMany := rows*max(c.classes, 16) > 256 || 4*c.width*(rows+c.classes) > 90<<10; begins("head") == tooMany || !tooMany && begins("slices") {
					t.Errorf("%d rows: the calls are %v", rows, symbols)
				}
				for chain := range got {
					if err := optest.Same(got[chain], separate[chain]); err != nil {
						t.Errorf("%d rows, chain %d: %v", rows, chain, err)
					}
				}
			}
		})
	}
}
