package cuda_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/cudatest"
	"github.com/pollen-ml/pollen/cuda/internal/plan"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/tensor"
)

// pooledCase is a convolution followed by max-pooling.
type pooledCase struct {
	name                                   string
	dtype                                  tensor.DType
	batch, channels, filters, height, taps int
	padding                                int
	reluBefore, reluAfter, bias            bool
	gradients                              bool
	chains                                 int
	precision                              cuda.Precision
	launches                               int // number of launches that the poolings change
	slices                                 string
	windows                                bool // on the tensor cores
}

var pooledCases = []pooledCase{
	{name: "relu before", dtype: tensor.Float32, batch: 3, channels: 2, filters: 5, height: 14, taps: 3, reluBefore: true, bias: true, gradients: true,
		chains: 1, launches: 4, slices: "none"},
	{name: "relu after", dtype: tensor.Float32, batch: 3, channels: 1, filters: 33, height: 12, taps: 5, reluAfter: true, bias: true, gradients: true,
		chains: 2, launches: 4, slices: "none"},
	{name: "float64", dtype: tensor.Float64, batch: 2, channels: 2, filters: 3, height: 8, taps: 3, reluBefore: true, bias: true, gradients: true,
		chains: 1, launches: 4, slices: "none"},
	{name: "neither bias nor relu", dtype: tensor.Float32, batch: 2, channels: 3, filters: 4, height: 10, taps: 3, padding: 1, gradients: true,
		chains: 3, launches: 4, slices: "none"},
	{name: "no gradients", dtype: tensor.Float32, batch: 2, channels: 3, filters: 4, height: 10, taps: 3, padding: 1, bias: true, reluBefore: true,
		chains: 1, launches: 2, slices: "none"},
	{name: "slices apart", dtype: tensor.Float32, batch: 1, channels: 64, filters: 6, height: 6, taps: 5, padding: 2, bias: true, reluBefore: true,
		gradients: true, chains: 1, launches: 4, slices: "apart"},
	{name: "slices apart, relu after", dtype: tensor.Float64, batch: 1, channels: 64, filters: 6, height: 6, taps: 5, padding: 2, bias: true, reluAfter: true,
		gradients: true, chains: 1, launches: 4, slices: "apart"},
	{name: "slices in turn", dtype: tensor.Float32, batch: 1, channels: 12, filters: 5, height: 4, taps: 5, padding: 2, bias: true, reluBefore: true,
		gradients: true, chains: 64, launches: 4, slices: "in turn"},
	{name: "tf32", dtype: tensor.Float32, batch: 3, channels: 2, filters: 40, height: 14, taps: 3, reluBefore: true, bias: true, gradients: true,
		chains: 1, precision: cuda.TF32, launches: 4, slices: "none"},
	{name: "windows in bf16", dtype: tensor.Float32, batch: 3, channels: 1, filters: 40, height: 16, taps: 5, padding: 2, reluBefore: true, bias: true,
		gradients: true, chains: 2, precision: cuda.BF16, launches: 4, slices: "none", windows: true},
	{name: "windows in bf16, relu after", dtype: tensor.Float32, batch: 3, channels: 2, filters: 5, height: 14, taps: 3, reluAfter: true, bias: true,
		gradients: true, chains: 1, precision: cuda.BF16, launches: 4, slices: "none", windows: true},
	{name: "windows in tf32, neither bias nor relu", dtype: tensor.Float32, batch: 3, channels: 2, filters: 5, height: 14, taps: 3, gradients: true,
		chains: 1, precision: cuda.TF32, launches: 4, slices: "none", windows: true},
	{name: "odd height", dtype: tensor.Float32, batch: 2, channels: 2, filters: 3, height: 9, taps: 3, padding: 1, bias: true, gradients: true,
		chains: 1, launches: 0, slices: "none"},
}

// TestPoolingInTheEpilogue compares convolutions that pool in their epilogue with the same
// launches, each with a separate kernel. All bits must be the same, also with ties and with
// negative and NaN sums.
func TestPoolingInTheEpilogue(t *testing.T) {
	for _, c := range pooledCases {
		t.Run(c.name, func(t *testing.T) {
			if c.windows {
				needs(t, cuda.WindowsVariable)
				plan.OnlyForwardOnWindows(t)
			}
			device := &catching{Device: fewMultiprocessors(t, cuda.Options{Precision: c.precision})}
			program, sizes := c.program(t)
			session, err := program.Load(device, graph.LoadOptions{Seed: 1, Chains: c.chains})
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			if got := cuda.PooledLaunches(device.schedule); got != c.launches {
				t.Errorf("%d launches have to do with pooling in an epilogue, want %d", got, c.launches)
			}
			if got := cuda.Slices(device.runner, 0); got != c.slices {
				t.Errorf("the convolution's depth has slices %s, want %s", got, c.slices)
			}
			want := make([][]float64, c.chains)
			for chain := range c.chains {
				if err := device.runner.Step(chain, func(int) error { return nil }); err != nil {
					t.Fatal(err)
				}
				want[chain] = outputs(t, session, chain, sizes)
			}
			if got := strings.Contains(strings.Join(cuda.Symbols(device.runner), " "), "conv2d_windows_pool"); got != c.windows {
				t.Errorf("the convolution is one by windows on the tensor cores: %v", got)
			}
			if err := session.Run(1); err != nil {
				t.Fatal(err)
			}
			got := make([][]float64, c.chains)
			for chain := range got {
				got[chain] = outputs(t, session, chain, sizes)
			}
			sameAs(t, ", a run against single launches", got, want)
		})
	}
}

// TestPooledAlone: where pooling kernels have another order of sums, a convolution on its own still
// has the bits that it has in a step.
func TestPooledAlone(t *testing.T) {
	needs(t, cuda.PackedVariable, cuda.WindowsVariable)
	one := op.Square(1)
	for precision, c := range map[cuda.Precision]packedCase{
		cuda.BF16: {batch: 4, channels: 16, height: 8, width: 8, filters: 16, taps: op.Square(3), stride: one, padding: one, dilation: one, pooled: true},
		cuda.TF32: {batch: 64, channels: 32, height: 8, width: 8, filters: 32, taps: one, stride: one, dilation: one, pooled: true},
	} {
		t.Run(string(precision), func(t *testing.T) {
			rounded := func(i int) float64 { return math.Sin(float64(i % 9973)) }
			device := cudatest.GPU(t, cuda.Options{Precision: precision})
			got, _ := c.results(t, device, 1, rounded)
			sameAs(t, ", single launches", [][]float64{c.launched(t, device, rounded)}, got)
		})
	}
}

// program computes the pooled maxima, and the gradients of their weighted sum with respect to
// image, filter and bias. It also returns the outputs' sizes.
func (c pooledCase) program(t *testing.T) (*graph.Program, map[string]int) {
	t.Helper()
	b, sizes := graph.New(c.dtype), map[string]int{}
	output := func(name string, n *graph.Node) {
		b.Output(name, n)
		sizes[name] = graph.ShapeOf(n).Elements()
	}
	few := func(begin int) graph.Initializer { // only eight numbers, so that maxima tie
		return func(_ uint64, chain uint32, _ uint16, _ tensor.Shape, values []float64) {
			for i := range values {
				values[i] = float64((begin+i*i+i/7+int(chain))%8-4) / 4
			}
		}
	}
	images := func(seed uint64, chain uint32, stream uint16, shape tensor.Shape, values []float64) {
		few(3)(seed, chain, stream, shape, values)
		for i := range values {
			if i/shape[3] < 4 {
				values[i] = -values[i] * values[i] // negative sums
			}
		}
		values[len(values)-shape[3]-3] = math.NaN()
	}
	x := b.State("x", images, c.batch, c.channels, c.height, c.height)
	w := b.State("w", few(1), c.filters, c.channels, c.taps, c.taps)
	bias := b.State("bias", few(2), c.filters)
	y := b.Apply(op.Conv2D{Stride: op.Square(1), Padding: op.Square(c.padding), Dilation: op.Square(1)}, x, w)
	wanted := []*graph.Node{x, w}
	if c.bias {
		y = b.Apply(op.BiasAdd{}, y, bias)
		wanted = append(wanted, bias)
	}
	if c.reluBefore {
		y = b.Apply(op.ReLU{}, y)
	}
	z := b.Apply(op.MaxPool2D{Window: op.Square(2), Stride: op.Square(2)}, y)
	if c.reluAfter {
		z = b.Apply(op.ReLU{}, z)
	}
	output("z", b.Apply(op.Exp{}, z)) // if z were an output itself, it would not be pooled in scratch memory
	if c.gradients {
		loss := b.Apply(op.Sum{}, b.Apply(op.Multiply{}, z, b.State("numbers", few(5), graph.ShapeOf(z)...)))
		for i, g := range b.Gradients(loss, wanted...) {
			output(fmt.Sprint("gradient", i), g)
		}
	}
	program, err := b.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return program, sizes
}

// outputs returns all outputs of a program for a chain, in order of their names.
func outputs(t *testing.T, session *graph.Session, chain int, sizes map[string]int) (all []float64) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		var err error
		values, narrow := make([]float64, sizes[name]), make([]float32, sizes[name])
		if session.Program().DType() == tensor.Float64 {
			err = graph.Read(session, name, chain, 0, values)
		} else {
			err = graph.Read(session, name, chain, 0, narrow)
			for i, v := range narrow {
				values[i] = float64(v)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, values...)
	}
	return all
}

// catching is a device that remembers the last workload and its runner.
type catching struct {
	tensor.Device
	schedule tensor.Workload
	runner   tensor.Runner
}

func (c *catching) Load(s tensor.Workload) (tensor.Runner, error) {
	runner, err := c.Device.Load(s)
	c.schedule, c.runner = s, runner
	if err == nil {
		remember(c.Device, func() []string { return cuda.Calls(runner) })
	}
	return runner, err
}

// Describe lists the calls of a workload, if the device can.
func (c *catching) Describe(s tensor.Workload) []string {
	if d, ok := c.Device.(interface {
		Describe(tensor.Workload) []string
	}); ok {
		return d.Describe(s)
	}
	return nil
}

// TestNetworksPool: networks with poolings pool in epilogues, in predictions and in training, there
// also for the gradients.
func TestNetworksPool(t *testing.T) {
	host := tensor.NewHost(1)
	defer host.Close()
	for _, model := range []string{"lenet-small", "lenet", "mnist-64-64-256"} {
		layer, err := layers.New(model, 10)
		if err != nil {
			t.Fatal(err)
		}
		b := graph.New(tensor.Float32)
		x, _ := op.Minibatch(b, op.Batch{Size: 20}, tensor.Shape{40, 1, 28, 28}, []float64{0.5}, []float64{0.5})
		b.Output("probabilities", b.Apply(op.Softmax{}, layer.Apply(b, x)))
		prediction, err := b.Compile()
		if err != nil {
			t.Fatal(err)
		}
		for program, want := range map[*graph.Program]int{prediction: 4, network(t, model, "sgld", 40, 20): 8} {
			device := &catching{Device: host}
			session, err := program.Load(device, graph.LoadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			if got := cuda.PooledLaunches(device.schedule); got != want {
				t.Errorf("%s: %d launches have to do with pooling in an epilogue, want %d", model, got, want)
			}
		}
	}
}

// TestViewsDoNotPool: the pooling windows of a convolution's result that is viewed in another shape
// differ from the epilogue's windows, so they are not pooled there.
func TestViewsDoNotPool(t *testing.T) {
	host := tensor.NewHost(1)
	defer host.Close()
	for _, height := range []int{8, 12} {
		b := graph.New(tensor.Float32)
		conv := op.Conv2D{Stride: op.Square(1), Padding: op.Square(1), Dilation: op.Square(1)}
		y := b.Apply(conv, b.State("x", nil, 2, 1, height, 144/height), b.State("w", nil, 3, 1, 3, 3))
		z := b.Apply(op.MaxPool2D{Window: op.Square(2), Stride: op.Square(2)}, b.Apply(op.ViewAs(2, 3, 12, 12), y))
		b.Output("z", b.Apply(op.Exp{}, z))
		program, err := b.Compile()
		if err != nil {
			t.Fatal(err)
		}
		device := &catching{Device: host}
		session, err := program.Load(device, graph.LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		want := 0
		if height == 12 {
			want = 2
		}
		if got := cuda.PooledLaunches(device.schedule); got != want {
			t.Errorf("height %d: %d launches have to do with pooling in an epilogue, want %d", height, got, want)
		}
	}
}
