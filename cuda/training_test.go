package cuda_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/cudatest"
	"github.com/pollen-ml/pollen/cuda/emulator"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/op/array"
	"github.com/pollen-ml/pollen/graph/optest"
	"github.com/pollen-ml/pollen/internal/testenv"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/tensor"
)

// TestConformance compares the device's results with the host's, op by op. Without a GPU, the large
// cases, which take a minute, run only in continuous integration. If the compute capability is
// limited, only products and convolutions run, whose kernels depend on it; the kernels of all other
// ops are the same on every GPU.
func TestConformance(t *testing.T) {
	device := cudatest.GPU(t, cuda.Options{})
	switch {
	case !testenv.All(t):
		optest.RunCases(t, device, optest.OnePerOp())
	case os.Getenv(cudatest.Variable) == "cuda" || os.Getenv(emulator.RequireVariable) != "":
		optest.Run(t, device)
	default:
		limited := os.Getenv(cuda.CapabilityVariable) != ""
		optest.RunCases(t, device, slices.DeleteFunc(optest.Cases(), func(c optest.Case) bool { return c.Speed || limited && !hasProduct(c) }))
	}
}

// hasProduct reports whether a case of the suite may call a kernel of products.
func hasProduct(c optest.Case) bool {
	if c.Op == nil {
		return true // a graph
	}
	return strings.Contains(c.Op.Name(), "matmul") || strings.Contains(c.Op.Name(), "conv2d")
}

const (
	trainImages = 24
	trainBatch  = 3
	trainSteps  = 10
)

// trainings are update rules that train a small network on a number of images.
var trainings = map[string]func(b *graph.Builder, loss *graph.Node, images int) error{
	"sgd": func(b *graph.Builder, loss *graph.Node, _ int) error {
		parameters := b.Parameters()
		optimizers.Update(b, optimizers.SGD{}, parameters, b.Gradients(loss, parameters...), b.Table("rates", []float64{0.05}))
		return nil
	},
	"sgld": func(b *graph.Builder, loss *graph.Node, images int) error {
		return attach(b, langevin.SGLD{}, loss, images)
	},
	"psgld": func(b *graph.Builder, loss *graph.Node, images int) error {
		return attach(b, langevin.PSGLD{Alpha: 0.9, Lambda: 1e-2, Gamma: langevin.GammaFrozen, FreezeAt: 5}, loss, images)
	},
}

func attach(b *graph.Builder, s langevin.Sampler, loss *graph.Node, images int) error {
	posterior := langevin.Posterior{DataSize: images, Prior: langevin.Gaussian(0.3)}
	return langevin.Attach(b, s, posterior, loss, []float64{posterior.StepSize(0.01)}, []float64{1})
}

// lenet returns a program that trains lenet-small.
func lenet(t testing.TB, rule string) *graph.Program {
	t.Helper()
	return network(t, "lenet-small", rule, trainImages, trainBatch)
}

// network returns a program that trains a network on MNIST's shapes by one of the trainings.
func network(t testing.TB, name, rule string, images, batch int) *graph.Program {
	t.Helper()
	layer, err := layers.New(name, 10)
	if err != nil {
		t.Fatal(err)
	}
	b := graph.New(tensor.Float32)
	x, y := op.Minibatch(b, op.Batch{Size: batch, Order: op.Shuffled}, tensor.Shape{images, 1, 28, 28}, []float64{0.5}, []float64{0.5})
	loss := b.Apply(op.CrossEntropy{}, layer.Apply(b, x), y)
	if err := trainings[rule](b, loss, images); err != nil {
		t.Fatal(err)
	}
	b.Record("loss", loss)
	program, err := b.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// result has a chain's losses and all its parameters.
type result struct{ losses, parameters []float64 }

// train runs trainSteps steps, in runs of together steps, and returns the chains' results.
func train(program *graph.Program, device tensor.Device, first, chains, together int) (results []result, err error) {
	session, err := program.Load(device, graph.LoadOptions{Seed: 3, FirstChain: first, Chains: chains})
	if err != nil {
		return nil, err
	}
	rememberProgram(device, program, chains)
	defer func() {
		if closing := session.Close(); err == nil {
			err = closing
		}
	}()
	images, labels := make([]byte, trainImages*28*28), make([]int32, trainImages)
	for i := range images {
		images[i] = byte(i * i / 7)
	}
	for i := range labels {
		labels[i] = int32(i % 10)
	}
	if err := graph.Write(session, "images", 0, 0, images); err != nil {
		return nil, err
	}
	if err := graph.Write(session, "labels", 0, 0, labels); err != nil {
		return nil, err
	}
	results = make([]result, chains)
	for at := 0; at < trainSteps; at += together {
		if err := session.Run(min(together, trainSteps-at)); err != nil {
			return nil, err
		}
		for chain := range results {
			for step := at; step < min(at+together, trainSteps); step++ {
				results[chain].losses = append(results[chain].losses, session.Metric(chain, "loss", uint64(step)))
			}
		}
	}
	for chain := range results {
		for _, p := range program.Parameters() {
			values := make([]float32, p.Shape.Elements())
			if err := session.ReadFloats(p.Name, chain, values); err != nil {
				return nil, err
			}
			for _, v := range values {
				results[chain].parameters = append(results[chain].parameters, float64(v))
			}
		}
	}
	return results, nil
}

// sameResults returns an error if a bit differs.
func sameResults(got, want result) error {
	if err := optest.Same(got.parameters, want.parameters); err != nil {
		return err
	}
	return optest.Same(got.losses, want.losses)
}

// TestTrainingIsTheHosts trains a network by three rules, one chain and three, on one GPU and two.
// A chain must equal the host's up to rounding, and have the same bits on its own, next to other
// chains, and step by step.
func TestTrainingIsTheHosts(t *testing.T) {
	host := tensor.NewHost(0)
	defer host.Close()
	for rule := range trainings {
		t.Run(rule, func(t *testing.T) {
			program := lenet(t, rule)
			want, err := train(program, host, 0, 3, trainSteps)
			if err != nil {
				t.Fatal(err)
			}
			device := cudatest.GPU(t, cuda.Options{})
			got, err := train(program, device, 0, 3, trainSteps)
			if err != nil {
				t.Fatal(err)
			}
			for chain := range want {
				// Ten steps let a rounding error of a gradient, whose sums have thousands of terms,
				// grow.
				tol := optest.SumTol(tensor.Float32, 100*trainBatch*24*24, want[chain].parameters)
				if err := optest.Close(got[chain].parameters, want[chain].parameters, tol); err != nil {
					dump(t, err)
					t.Errorf("chain %d: parameters: %v", chain, err)
				}
				if err := optest.Close(got[chain].losses, want[chain].losses, tol); err != nil {
					dump(t, err)
					t.Errorf("chain %d: losses: %v", chain, err)
				}
			}
			separate, err := train(program, device, 2, 1, 1)
			if err != nil {
				t.Fatal(err)
			}
			if err := sameResults(separate[0], got[2]); err != nil {
				dump(t, err)
				t.Errorf("chain 2 on its own, step by step, differs from chain 2 among others: %v", err)
			}
		})
	}
}

// TestTrainingOnTwoGPUs splits chains over two GPUs, which changes no bit.
func TestTrainingOnTwoGPUs(t *testing.T) {
	program := lenet(t, "sgld")
	device := cudatest.GPU(t, cuda.Options{GPUs: []int{1, 0}})
	both, err := train(program, device, 0, 3, trainSteps)
	if err != nil {
		t.Fatal(err)
	}
	separate, err := train(program, device, 2, 1, trainSteps)
	if err != nil {
		t.Fatal(err)
	}
	if err := sameResults(separate[0], both[2]); err != nil { // one was on the other GPU
		dump(t, err)
		t.Errorf("chain 2 is another on its own: %v", err)
	}
}

// TestNotFiniteIsExplained makes a metric infinite. The session must name the launch, as it does on
// the host.
func TestNotFiniteIsExplained(t *testing.T) {
	b := graph.New(tensor.Float32)
	x := b.State("x", func(_ uint64, _ uint32, _ uint16, _ tensor.Shape, values []float64) { values[0] = 100 }, 1)
	b.Record("y", b.Apply(array.Element{}, b.Apply(op.Exp{}, x)))
	program, err := b.Compile()
	if err != nil {
		t.Fatal(err)
	}
	session, err := program.Load(cudatest.GPU(t, cuda.Options{}), graph.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	err = session.Run(1)
	if fault, ok := err.(*graph.NotFinite); !ok || fault.Kernel != "exp_fwd_f32" {
		t.Errorf("got %v, want a NotFinite of exp_fwd_f32", err)
	}
}

// TestManyMetrics records more metrics than a launch takes, of one element and of many, in chains
// and steps.
func TestManyMetrics(t *testing.T) {
	const metrics, chains, steps = 37, 2, 3
	b := graph.New(tensor.Float64)
	x := b.State("x", func(_ uint64, chain uint32, _ uint16, _ tensor.Shape, values []float64) {
		for i := range values {
			values[i] = float64(i%7) + 100*float64(chain)
		}
	}, 300)
	total := b.Apply(op.Sum{}, x)
	for i := range metrics {
		b.Record(fmt.Sprint("metric ", i), b.Apply(op.Scale{Factor: float64(i + 1)}, []*graph.Node{x, total}[i%2]))
	}
	program, err := b.Compile()
	if err != nil {
		t.Fatal(err)
	}
	session, err := program.Load(cudatest.GPU(t, cuda.Options{}), graph.LoadOptions{Chains: chains})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if err := session.Run(steps); err != nil {
		t.Fatal(err)
	}
	for chain := range chains {
		sum := 0.0
		for i := range 300 {
			sum += float64(i%7) + 100*float64(chain)
		}
		for i := range metrics {
			for step := range steps {
				if got, want := session.Metric(chain, fmt.Sprint("metric ", i), uint64(step)), sum*float64(i+1); got != want {
					t.Errorf("chain %d, step %d: metric %d is %v, want %v", chain, step, i, got, want)
				}
			}
		}
	}
}

func ExampleOpen() {
	device, err := cuda.Open(cuda.Options{GPUs: []int{0}, Precision: cuda.TF32})
	if err != nil {
		fmt.Println("no GPU here")
		return
	}
	defer device.Close()
	// program.Load(device, graph.LoadOptions{Seed: 1, Chains: 64}) runs 64 chains on it.
}
