package cuda_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/cudatest"
	"github.com/pollen-ml/pollen/cuda/internal/plan"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// calibration is the measured speed of a tile of the product kernels: GFLOP/s of products with
// enough blocks to fill all multiprocessors, and of products of a single tile's size, which are cut
// into slices. A speed for full multiprocessors in package plan is the former divided by 256
// operations per cycle of each multiprocessor. In tile.go, matmul gives matrices and conv2d gives
// conv. conv2d_nhwc gives the speed of a packed tile, including the packing of both operands, and
// conv2d_nhwc_group the speed of a wgmma tile.
type calibration struct {
	Product   string  `json:"product"`
	Precision string  `json:"precision"`
	Tile      string  `json:"tile"`
	Full      float64 `json:"full gflops"`
	Single    float64 `json:"single gflops"`
}

// TestCalibrate measures every tile on normally distributed numbers, if POLLEN_CALIBRATION names
// the file for the results, which is written after each tile. POLLEN_CALIBRATION_SIZE is the side
// of the large products, by default 4096. POLLEN_CALIBRATION_ONLY selects by precision, product and
// tile, as described at selected: "bf16/matmul,bf16/conv2d_nhwc_group,tf32/64x64".
func TestCalibrate(t *testing.T) {
	size, save := measurement(t, "POLLEN_CALIBRATION", "the tiles of the product kernels")
	var all []calibration
	for _, precision := range []cuda.Precision{cuda.BF16, cuda.TF32, cuda.FP32} {
		t.Run(string(precision), func(t *testing.T) {
			device := cudatest.GPU(t, cuda.Options{Precision: precision})
			measure := func(product, kernel string, tile, single [2]int, only func(t *testing.T)) {
				c := calibration{Product: product, Precision: string(precision), Tile: fmt.Sprintf("%dx%d", tile[0], tile[1])}
				if !selected(c.Precision, c.Product, c.Tile) {
					return
				}
				t.Run(c.Product+" "+c.Tile, func(t *testing.T) {
					only(t)
					c.Full = speed(t, device, kernel, size, size, size)
					c.Single = speed(t, device, kernel, single[0], single[1], size)
					t.Logf("%+v", c)
					all = append(all, c)
					save(all)
				})
			}
			for number, tile := range plan.PackedTiles(precision) {
				measure("conv2d_nhwc", "conv2d", tile, tile, func(t *testing.T) { plan.OnlyPacked(t, precision, number) })
			}
			if precision == cuda.BF16 && hasWGMMA(device) {
				for number, tile := range plan.WGMMATiles() {
					measure("conv2d_nhwc_group", "conv2d", tile, [2]int{64, tile[0] * tile[1]}, func(t *testing.T) { plan.OnlyWGMMA(t, number) })
				}
			}
			for _, tile := range plan.TileSizes(precision, cuda.Capability(device)) {
				for _, product := range []string{"matmul", "conv2d"} {
					measure(product, product, tile, tile, func(t *testing.T) { plan.OnlyTile(t, tile[0], tile[1]) })
				}
			}
			for number, tile := range plan.SlicedKTiles(precision) {
				if cuda.FitsSlicedK(device, precision, number) {
					measure("matmul side by side", "matmul", tile, tile, func(t *testing.T) { plan.OnlySlicedK(t, precision, number) })
				}
			}
			if precision == cuda.BF16 {
				for number, tile := range plan.RoundedTiles() {
					measure("matmul rounded", "matmul", tile, tile, func(t *testing.T) { plan.OnlyRounded(t, number) })
				}
			}
		})
	}
	save(all)
}

// selected reports whether to measure something with these names. POLLEN_CALIBRATION_ONLY is a
// comma-separated list of items, each of which consists of names joined by slashes. All names of
// some item must be among names. If the variable is empty, everything is measured.
func selected(names ...string) bool {
	only := os.Getenv("POLLEN_CALIBRATION_ONLY")
	if only == "" {
		return true
	}
	for _, item := range strings.Split(only, ",") {
		wanted := strings.Split(item, "/")
		matching := 0
		for _, name := range wanted {
			if slices.Contains(names, name) {
				matching++
			}
		}
		if matching == len(wanted) {
			return true
		}
	}
	return false
}

// wholeSize is the default of POLLEN_CALIBRATION_SIZE.
const wholeSize = 4096

// measurement begins a test that measures something. It skips the test unless the environment
// variable names the file for the results.
func measurement(t *testing.T, variable, what string) (size int, save func(results any)) {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		t.Skipf("%s=FILE measures %s", variable, what)
	}
	size, err := strconv.Atoi(os.Getenv("POLLEN_CALIBRATION_SIZE"))
	if err != nil {
		size = wholeSize
	}
	return size, func(results any) {
		text, err := json.MarshalIndent(results, "", "  ")
		if err == nil {
			err = os.WriteFile(path+".new", text, 0o644)
		}
		if err == nil {
			err = os.Rename(path+".new", path) // a reader, or a run cut short, finds a whole file
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// normals returns n normally distributed numbers, repeated after a prime number of them. Zeros
// would take a GPU less power and be multiplied faster.
func normals(n int) []float32 {
	block := make([]float32, 1000003)
	random.Normals(block, 1, random.Address{})
	all := make([]float32, 0, n)
	for len(all) < n {
		all = append(all, block[:min(len(block), n-len(all))]...)
	}
	return all
}

// speed returns the GFLOP/s of a product of rows x depth by depth x columns, or of a convolution of
// about that size, in the best of three rounds.
func speed(t *testing.T, device tensor.Device, product string, rows, columns, depth int) float64 {
	t.Helper()
	b := graph.New(tensor.Float32)
	sizes := map[string]int{}
	input := func(name string, shape ...int) *graph.Node {
		sizes[name] = tensor.Shape(shape).Elements()
		return b.State(name, nil, shape...)
	}
	var y *graph.Node
	operations := 2 * float64(rows) * float64(columns) * float64(depth)
	if product == "matmul" {
		y = b.Apply(op.MatMul{}, input("a", rows, depth), input("b", depth, columns))
	} else {
		const side, kernel = 16, 5 // images of 16 x 16, whose borders are padded
		channels, images := max(1, depth/(kernel*kernel)), max(1, columns/(side*side))
		y = b.Apply(op.Conv2D{Stride: op.Square(1), Padding: op.Square(2), Dilation: op.Square(1)},
			input("x", images, channels, side, side), input("w", rows, channels, kernel, kernel))
		operations = 2 * float64(rows*images*side*side) * float64(channels*kernel*kernel)
	}
	b.Output("y", y)
	program, err := b.Compile()
	if err != nil {
		t.Fatal(err)
	}
	session, err := program.Load(device, graph.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	for name, n := range sizes {
		if err := session.WriteFloats(name, 0, normals(n)); err != nil {
			t.Fatal(err)
		}
	}
	run := func(steps int) float64 {
		begin := time.Now()
		if err := session.Run(steps); err != nil {
			t.Fatal(err)
		}
		return time.Since(begin).Seconds()
	}
	run(1)
	steps, best := 1, run(1)
	for best < 0.02 && steps < 4096 {
		steps *= 4
		best = run(steps)
	}
	for range 2 {
		best = min(best, run(steps))
	}
	return operations * float64(steps) / best / 1e9
}
