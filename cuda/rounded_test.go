package cuda_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/cudatest"
	"github.com/pollen-ml/pollen/cuda/internal/plan"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/optest"
	"github.com/pollen-ml/pollen/internal/testenv"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/tensor"
)

// TestRoundedProducts compares each tile of products that round their operands once with the naive
// loops: edges, depths of less than one stage and of many stages, slices, all orientations, a bias,
// a ReLU, a mask.
func TestRoundedProducts(t *testing.T) {
	needs(t, cuda.RoundedVariable)
	for number, size := range plan.RoundedTiles() {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			gpu := cudatest.GPU(t, cuda.Options{Precision: cuda.BF16})
			plan.OnlyRounded(t, number)
			m, n := size[0]+3, size[1]+5
			rows := []optest.Case{
				product("along the depth", m, 300, n, op.MatMul{TransposeB: true}),
				product("across the depth", size[0]-4, 37, size[1]+4, op.MatMul{TransposeA: true}),
				product("the first along the depth", m, 20, size[1]-4, op.MatMul{}),
				product("the second along the depth", size[0]+4, 132, n, op.MatMul{TransposeA: true, TransposeB: true}),
				withReLU("relu", 9, 40, 7),
				masked("mask", m, 68, size[1]+8),
			}
			for _, c := range testenv.Some(t, 2, rows) {
				c.Loosen, c.Reason, c.Speed, c.Flops, c.NoGradient = looseness[cuda.BF16], "operands are rounded", true, 1, true
				device := &catching{Device: gpu}
				optest.RunCases(t, device, []optest.Case{c})
				if want := fmt.Sprintf("matmul_rounded_%dx%d_bf16", size[0], size[1]); !slices.Contains(cuda.Symbols(device.runner), want) {
					t.Errorf("%s: there is no %s among %v", c.Name, want, cuda.Symbols(device.runner))
				}
			}
		})
	}
}

// TestRoundedBits: products that round their operands once give the same bits as other tiles, so
// that the choice of a tile may depend on the number of chains.
func TestRoundedBits(t *testing.T) {
	needs(t, cuda.RoundedVariable)
	device := cudatest.GPU(t, cuda.Options{Precision: cuda.BF16})
	for _, matmul := range []op.MatMul{{TransposeB: true}, {TransposeA: true}, {}, {TransposeA: true, TransposeB: true}} {
		compute := func(t *testing.T) []float32 { return productOnce(t, device, 68, 428, 72, matmul) }
		want := compute(t)
		for number, size := range plan.RoundedTiles() {
			t.Run(fmt.Sprintf("%v/%dx%d", matmul, size[0], size[1]), func(t *testing.T) {
				plan.OnlyRounded(t, number)
				for i, v := range compute(t) {
					if math.Float32bits(v) != math.Float32bits(want[i]) {
						t.Fatalf("element %d is %v, by another tile %v", i, v, want[i])
					}
				}
			})
		}
	}
}

// TestImagesFromDataSet trains a network whose first layer is linear. Its products read the bytes
// of the data set, forward and backward, and no kernel gathers images. The results have the same
// bits as with gathered images. If something else reads the images, they are gathered.
func TestImagesFromDataSet(t *testing.T) {
	needs(t, cuda.RoundedVariable)
	const examples, batch, chains, steps = 301, 150, 2, 2
	shape := tensor.Shape{examples, 2, 8, 9}
	images, labels := make([]byte, shape.Elements()), make([]int32, examples)
	for i := range images {
		images[i] = byte(i * i / 7)
	}
	for i := range labels {
		labels[i] = int32(i % 10)
	}
	train := func(t *testing.T, device tensor.Device, read bool) (weights []float32, symbols []string) {
		b := graph.New(tensor.Float32)
		x, y := op.Minibatch(b, op.Batch{Size: batch, Order: op.Shuffled}, shape, []float64{0.5, 0.4}, []float64{0.25, 0.3})
		network := layers.Sequential{layers.Flatten{}, layers.Linear{Outputs: 44}, layers.ReLU{}, layers.Linear{Outputs: 10}}
		loss := b.Apply(op.CrossEntropy{}, network.Apply(b, x), y)
		if err := trainings["sgd"](b, loss, shape[0]); err != nil {
			t.Fatal(err)
		}
		if read {
			b.Output("sum", b.Apply(op.Sum{}, x))
		}
		session := load(t, b, device, chains)
		for _, err := range []error{graph.Write(session, "images", 0, 0, images), graph.Write(session, "labels", 0, 0, labels), session.Run(steps)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		for chain := range chains {
			for _, p := range b.Parameters() {
				values := make([]float32, graph.ShapeOf(p).Elements())
				if err := session.ReadFloats(p.Name(), chain, values); err != nil {
					t.Fatal(err)
				}
				weights = append(weights, values...)
			}
		}
		return weights, cuda.Symbols(device.(*catching).runner)
	}
	const gathers = "gather_images_f32"
	plan.OnlyRounded(t, 0) // and no thin products
	var got [][]float32
	for number, size := range plan.ImageTiles() {
		reads := fmt.Sprintf("matmul_rounded_images_%dx%d_bf16", size[0], size[1])
		t.Run(reads, func(t *testing.T) {
			plan.OnlyImageTile(t, number)
			device := &catching{Device: cudatest.GPU(t, cuda.Options{Precision: cuda.BF16})}
			weights, symbols := train(t, device, false)
			if slices.Contains(symbols, gathers) || !slices.Contains(symbols, reads) {
				t.Errorf("the kernels are %v, want %s without %s", symbols, reads, gathers)
			}
			if _, symbols = train(t, device, true); !slices.Contains(symbols, gathers) || slices.Contains(symbols, reads) {
				t.Errorf("if the images' sum is asked for, the kernels are %v, want %s without %s", symbols, gathers, reads)
			}
			got = append(got, weights)
		})
	}
	t.Run("gathered", func(t *testing.T) {
		t.Setenv(cuda.RoundedVariable, "off")
		want, symbols := train(t, &catching{Device: cudatest.GPU(t, cuda.Options{Precision: cuda.BF16})}, false)
		if !slices.Contains(symbols, gathers) {
			t.Errorf("without rounded products the kernels are %v, want %s", symbols, gathers)
		}
		for tile, weights := range got {
			for i, v := range weights {
				if math.Float32bits(v) != math.Float32bits(want[i]) {
					t.Fatalf("tile %d: parameter %d is %v, of gathered images %v", tile, i, v, want[i])
				}
			}
		}
	})
}

// layerSpeed is the time of a linear layer's product with many chains.
type layerSpeed struct {
	Product string  `json:"product"`
	Tile    string  `json:"tile"`
	Micros  float64 `json:"us"`
	Bytes   float64 `json:"gb per second"` // of operands and result, each once
}

// TestMeasureLayers measures the products of two networks' linear layers with each tile that rounds
// once, and without these tiles, if POLLEN_CALIBRATION_LAYERS names the file for the results.
// POLLEN_CALIBRATION_SIZE is 64 times the number of chains, which is 64 by default.
func TestMeasureLayers(t *testing.T) {
	size, save := measurement(t, "POLLEN_CALIBRATION_LAYERS", "the products of linear layers")
	chains := size / 64
	var all []layerSpeed
	for _, layer := range []struct {
		name    string
		m, k, n int
		matmul  op.MatMul
	}{
		{"mlp forward", 500, 784, 100, op.MatMul{TransposeB: true}},
		{"mlp weights", 100, 500, 784, op.MatMul{TransposeA: true}},
		{"linear forward", 100, 3136, 256, op.MatMul{TransposeB: true}},
		{"linear input", 100, 256, 3136, op.MatMul{}},
		{"linear weights", 256, 100, 3136, op.MatMul{TransposeA: true}},
	} {
		measure := func(tile string, only func(t *testing.T)) {
			t.Run(layer.name+" "+tile, func(t *testing.T) {
				only(t)
				device := cudatest.GPU(t, cuda.Options{Precision: cuda.BF16})
				seconds := productSeconds(t, device, layer.m, layer.k, layer.n, layer.matmul, chains, strings.HasPrefix(tile, "images"))
				bytes := float64(4 * chains * (layer.m*layer.k + layer.k*layer.n + layer.m*layer.n))
				all = append(all, layerSpeed{layer.name, tile, 1e6 * seconds, bytes / seconds / 1e9})
				t.Logf("%+v", all[len(all)-1])
				save(all)
			})
		}
		for number, size := range plan.RoundedTiles() {
			measure(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) { plan.OnlyRounded(t, number) })
		}
		measure("not rounded", func(t *testing.T) { t.Setenv(cuda.RoundedVariable, "off") })
		if layer.name[:3] != "mlp" {
			continue
		}
		for number, size := range plan.ImageTiles() {
			measure(fmt.Sprintf("images %dx%d", size[0], size[1]), func(t *testing.T) { plan.OnlyImageTile(t, number) })
		}
	}
}

// productSeconds returns the time of a product for a number of chains, the best of three rounds. If
// images is set, one operand is a batch of images of a data set: the first one going forward.
func productSeconds(t *testing.T, device tensor.Device, m, k, n int, matmul op.MatMul, chains int, images bool) float64 {
	t.Helper()
	b := graph.New(tensor.Float32)
	left, right := operandsOf(matmul, m, k, n)
	sizes := map[string]int{}
	operand := func(name string, shape []int) *graph.Node {
		if images && (name == "a") != matmul.TransposeA {
			x, _ := op.Minibatch(b, op.Batch{Size: shape[0], Order: op.Shuffled}, tensor.Shape{60000, 1, 1, shape[1]}, []float64{0.5}, []float64{0.5})
			return b.Apply(op.ViewAs(shape...), x)
		}
		sizes[name] = shape[0] * shape[1]
		return b.State(name, nil, shape...)
	}
	b.Output("y", b.Apply(matmul, operand("a", left), operand("b", right)))
	session := load(t, b, device, chains)
	for name, size := range sizes {
		values := normals(size)
		for chain := range chains {
			if err := session.WriteFloats(name, chain, values); err != nil {
				t.Fatal(err)
			}
		}
	}
	if images {
		each := k
		if matmul.TransposeA {
			each = n
		}
		pixels := make([]byte, 60000*each)
		for i := range pixels {
			pixels[i] = byte(i * i / 7)
		}
		if err := graph.Write(session, "images", 0, 0, pixels); err != nil {
			t.Fatal(err)
		}
	}
	run := func(steps int) float64 {
		begin := time.Now()
		if err := session.Run(steps); err != nil {
			t.Fatal(err)
		}
		return time.Since(begin).Seconds() / float64(steps)
	}
	run(16)
	best := run(64)
	for range 2 {
		best = min(best, run(64))
	}
	return best
}
