package stock

import (
	"context"
	"fmt"
	"math"
	"testing"

	"gorgonia.org/gorgonia"
	dense "gorgonia.org/tensor"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/cudatest"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// referenceOf is layers' mnist-64-64-256 with other widths.
func referenceOf(filters, hidden int) layers.Sequential {
	return layers.Sequential{
		layers.Conv2D{Filters: filters, Kernel: 5, Padding: 2}, layers.ReLU{}, layers.MaxPool{Window: 2},
		layers.Conv2D{Filters: filters, Kernel: 5, Padding: 2}, layers.ReLU{}, layers.MaxPool{Window: 2},
		layers.Flatten{}, layers.Linear{Outputs: hidden}, layers.ReLU{}, layers.Linear{Outputs: 10},
	}
}

// stockReference is the same network made of stock ops, for another batch.
func stockReference(t testing.TB, filters, hidden, side int) *Network {
	t.Helper()
	const batch = 3
	g := gorgonia.NewGraph()
	input := func(name string, shape ...int) *gorgonia.Node {
		return gorgonia.NewTensor(g, dense.Float32, len(shape), gorgonia.WithShape(shape...), gorgonia.WithName(name), gorgonia.WithInit(gorgonia.Zeroes()))
	}
	x := input("x", batch, 1, side, side)
	h, channels := x, 1
	var parameters gorgonia.Nodes
	for i := 1; i <= 2; i++ {
		w, b := input(fmt.Sprintf("conv%d.weight", i), filters, channels, 5, 5), input(fmt.Sprintf("conv%d.bias", i), filters)
		h = must(gorgonia.Conv2d(h, w, dense.Shape{5, 5}, []int{2, 2}, []int{1, 1}, []int{1, 1}))
		h = must(gorgonia.BroadcastAdd(h, must(gorgonia.Reshape(b, dense.Shape{1, filters, 1, 1})), nil, []byte{0, 2, 3}))
		h = must(gorgonia.MaxPool2D(must(gorgonia.Rectify(h)), dense.Shape{2, 2}, []int{0, 0}, []int{2, 2}))
		parameters, channels = append(parameters, w, b), filters
	}
	width := h.Shape().TotalSize() / batch
	h = must(gorgonia.Reshape(h, dense.Shape{batch, width}))
	for i, outputs := range []int{hidden, 10} {
		w, b := input(fmt.Sprintf("linear%d.weight", i+1), outputs, width), input(fmt.Sprintf("linear%d.bias", i+1), outputs)
		if i == 1 {
			h = must(gorgonia.Rectify(h))
		}
		h = must(gorgonia.BroadcastAdd(must(gorgonia.Mul(h, must(gorgonia.Transpose(w)))), must(gorgonia.Reshape(b, dense.Shape{1, outputs})), nil, []byte{0}))
		parameters, width = append(parameters, w, b), outputs
	}
	network, err := NewNetwork(x, h, parameters...)
	if err != nil {
		t.Fatal(err)
	}
	return network
}

// sampling is a session of SGLD for a network on noise.
func sampling(t testing.TB, device tensor.Device, network layers.Layer, batch, side, chains int) *graph.Session {
	t.Helper()
	const examples = 12
	b := graph.New(tensor.Float32)
	x, labels := op.Minibatch(b, op.Batch{Size: batch, Order: op.Shuffled}, tensor.Shape{examples, 1, side, side}, []float64{0.5}, []float64{0.3})
	loss := b.Apply(op.CrossEntropy{}, network.Apply(b, x), labels)
	posterior := langevin.Posterior{DataSize: examples, Prior: langevin.Gaussian(0.3)}
	if err := langevin.Attach(b, langevin.SGLD{}, posterior, loss, []float64{1e-4}, []float64{1}); err != nil {
		t.Fatal(err)
	}
	program, err := b.Compile()
	if err != nil {
		t.Fatal(err)
	}
	session, err := program.Load(device, graph.LoadOptions{Seed: 5, Chains: chains})
	if err != nil {
		t.Fatal(err)
	}
	images, classes := make([]byte, examples*side*side), make([]int32, examples)
	for i := range images {
		images[i] = byte(i * i % 251)
	}
	for i := range classes {
		classes[i] = int32(i % 10)
	}
	if err := graph.Write(session, "images", 0, 0, images); err != nil {
		t.Fatal(err)
	}
	if err := graph.Write(session, "labels", 0, 0, classes); err != nil {
		t.Fatal(err)
	}
	return session
}

// states returns the parameters of all chains.
func states(t testing.TB, s *graph.Session) (all []samples.Sample) {
	t.Helper()
	for chain := range s.Chains() {
		state, err := samples.FromSession(s, chain, 1)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, state)
	}
	return all
}

// The reference network made of stock ops, when adopted, gives the same samples as Pollen's own,
// on the host and on a GPU.
func TestAdoptedSamplesAreOurs(t *testing.T) {
	host := tensor.NewHost(0)
	defer host.Close()
	for _, test := range []struct {
		name                  string
		device                tensor.Device
		filters, hidden, side int
		steps, chains         int
	}{
		{"host", host, 64, 256, 28, 4, 2},
		{"gpu", cudatest.GPU(t, cuda.Options{}), 4, 8, 8, 3, 2},
	} {
		own := sampling(t, test.device, referenceOf(test.filters, test.hidden), 4, test.side, test.chains)
		defer own.Close()
		adopted := sampling(t, test.device, stockReference(t, test.filters, test.hidden, test.side), 4, test.side, test.chains)
		defer adopted.Close()
		for chain, state := range states(t, own) {
			if err := state.Put(adopted, chain); err != nil {
				t.Fatal(err)
			}
		}
		start := states(t, own)
		for _, s := range []*graph.Session{own, adopted} {
			if err := s.Run(test.steps); err != nil {
				t.Fatal(err)
			}
		}
		got, want := states(t, adopted), states(t, own)
		for chain := range want {
			for i, p := range want[chain].Parameters {
				q, moved := got[chain].Parameters[i], 0.0
				if q.Name != p.Name {
					t.Fatalf("%s: parameter %d is %s, want %s", test.name, i, q.Name, p.Name)
				}
				for j, v := range p.Values {
					moved = max(moved, math.Abs(float64(v-start[chain].Parameters[i].Values[j])))
					if math.Abs(float64(q.Values[j]-v)) > 1e-6 {
						t.Fatalf("%s: chain %d, %s[%d] is %v, want %v", test.name, chain, p.Name, j, q.Values[j], v)
					}
				}
				if moved < 1e-3 {
					t.Errorf("%s: %s moved by %v only", test.name, p.Name, moved)
				}
			}
		}
	}
}

// A sample comes back into the stock graph: what Gorgonia then computes is what Pollen did.
func TestLetSample(t *testing.T) {
	network := stockReference(t, 3, 5, 8)
	values := make([]float32, 3*1*5*5)
	for i := range values {
		values[i] = float32(i) / 10
	}
	if err := network.Let("conv1.weight", values); err != nil {
		t.Fatal(err)
	}
	for i, v := range floatsOf(network.parameters[0].Value()) {
		if float32(v) != values[i] {
			t.Fatalf("element %d is %v, want %v", i, v, values[i])
		}
	}
	wantError(t, network.Let("conv1.weight", values[1:]), "conv1.weight", "got 74")
	wantError(t, network.Let("conv9.weight", values), "no parameter", "conv9.weight")
}

// A stock graph with its own loss is sampled, too: a Bayesian straight line, whose posterior is
// known.
func TestAdoptedLoss(t *testing.T) {
	g := gorgonia.NewGraph()
	x := gorgonia.NewMatrix(g, dense.Float32, gorgonia.WithShape(3, 1), gorgonia.WithName("x"))
	y := gorgonia.NewMatrix(g, dense.Float32, gorgonia.WithShape(3, 1), gorgonia.WithName("y"))
	slope := gorgonia.NewMatrix(g, dense.Float32, gorgonia.WithShape(1, 1), gorgonia.WithName("slope"), gorgonia.WithInit(gorgonia.Zeroes()))
	residual := must(gorgonia.Sub(must(gorgonia.Mul(x, slope)), y))
	loss := must(gorgonia.HadamardDiv(must(gorgonia.Mean(must(gorgonia.Square(residual)))), gorgonia.NewConstant(float32(2))))

	b := graph.New(tensor.Float32)
	places := map[*gorgonia.Node]*graph.Node{x: b.Data("x", tensor.Float32, 3, 1), y: b.Data("y", tensor.Float32, 3, 1)}
	adopted := Adopt(b, places, loss)[0]
	posterior := langevin.Posterior{DataSize: 3, Prior: langevin.Gaussian(1)}
	if err := langevin.Attach(b, langevin.SGLD{}, posterior, adopted, []float64{0.005}, []float64{1}); err != nil {
		t.Fatal(err)
	}
	var sum, n float64
	err := b.OnHost(graph.LoadOptions{Seed: 1, Chains: 20}, func(s *graph.Session) error {
		for name, values := range map[string][]float32{"x": {1, 2, 3}, "y": {2.1, 3.9, 6.2}} {
			if err := graph.Write(s, name, 0, 0, values); err != nil {
				return err
			}
		}
		plan := langevin.Plan{Steps: 5100, BurnIn: 100, Thinning: 10}
		return plan.Run(context.Background(), s, graph.MetricRows, func(p langevin.Window) error {
			for chain := 0; p.Sample && chain < s.Chains(); chain++ {
				state, err := samples.FromSession(s, chain, 1)
				if err != nil {
					return err
				}
				sum, n = sum+float64(state.Parameters[0].Values[0]), n+1
			}
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	// The posterior is N(1.9, 1/15).
	if mean := sum / n; math.Abs(mean-1.9) > 0.02 {
		t.Errorf("the mean is %v, want 1.9", mean)
	}
}
