package cuda_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/cudatest"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// calibration is the measured speed of a tile of the product kernels: GFLOP/s of products with
// enough blocks to fill all multiprocessors, and of products of a single tile's size, which are cut
// into slices. In geometry_tile.go, a speed for full multiprocessors is the former divided by what
// these could do, 256 operations in a cycle of each: of matmul in matrices, of conv2d in images, of
// conv2d_nhwc that of a packed tile, the packing of both operands included, and of
// conv2d_nhwc_group that of one by wgmma.
type calibration struct {
	Product   string  `json:"product"`
	Precision string  `json:"precision"`
	Tile      string  `json:"tile"`
	Full      float64 `json:"full gflops"`
	Single    float64 `json:"single gflops"`
}

// TestCalibrate measures every tile, if POLLEN_CALIBRATION names the file for the results;
// POLLEN_CALIBRATION_SIZE is the side of the large products, 4096.
func TestCalibrate(t *testing.T) {
	size, save := measurement(t, "POLLEN_CALIBRATION", "the tiles of the product kernels")
	var all []calibration
	for _, precision := range []cuda.Precision{cuda.FP32, cuda.TF32, cuda.BF16} {
		t.Run(string(precision), func(t *testing.T) {
			device := cudatest.GPU(t, cuda.Options{Precision: precision})
			for _, tile := range cuda.TileSizes(precision, cuda.Capability(device), tensor.Float32) {
				all = append(all, calibrate(t, device, precision, tile, size)...)
			}
			for number, tile := range cuda.SideBySide(precision) {
				if !cuda.FitsSideBySide(device, precision, number) {
					continue
				}
				only := func(t *testing.T) { cuda.OnlySideBySide(t, precision, number) }
				c := calibration{Product: "matmul side by side", Precision: string(precision), Tile: fmt.Sprintf("%dx%d", tile[0], tile[1])}
				all = append(all, c.only(t, device, "matmul", tile, size, only))
			}
			for number, tile := range cuda.PackedTiles(precision) {
				only := func(t *testing.T) { cuda.OnlyPacked(t, precision, number) }
				c := calibration{Product: "conv2d_nhwc", Precision: string(precision), Tile: fmt.Sprintf("%dx%d", tile[0], tile[1])}
				all = append(all, c.only(t, device, "conv2d", tile, size, only))
			}
			if precision != cuda.BF16 || !hasGroups(device) {
				return
			}
			for number, tile := range cuda.GroupTiles() {
				only := func(t *testing.T) { cuda.OnlyGroups(t, number) }
				c := calibration{Product: "conv2d_nhwc_group", Precision: string(precision), Tile: fmt.Sprintf("%dx%d", tile[0], tile[1])}
				all = append(all, c.only(t, device, "conv2d", [2]int{64, tile[0] * tile[1]}, size, only))
			}
		})
	}
	save(all)
}

// wholeSize is the size of measurements, unless POLLEN_CALIBRATION_SIZE is another.
const wholeSize = 4096

// measurement begins a test that measures something if an environment variable names the file for
// the results, and is skipped otherwise.
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
			err = os.WriteFile(path, text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// calibrate measures a tile, with all others left out.
func calibrate(t *testing.T, device tensor.Device, precision cuda.Precision, tile [2]int, size int) (all []calibration) {
	t.Run(fmt.Sprintf("%dx%d", tile[0], tile[1]), func(t *testing.T) {
		cuda.OnlyTile(t, tile[0], tile[1])
		for _, product := range []string{"matmul", "conv2d"} {
			c := calibration{Product: product, Precision: string(precision), Tile: fmt.Sprintf("%dx%d", tile[0], tile[1])}
			c.Full = speed(t, device, product, size, size, size)
			c.Single = speed(t, device, product, tile[0], tile[1], size)
			t.Logf("%+v", c)
			all = append(all, c)
		}
	})
	return all
}

// only measures a tile of another kind, with all others left out: of products, or of packed
// convolutions of some filters and pixels.
func (c calibration) only(t *testing.T, device tensor.Device, product string, tile [2]int, size int, only func(t *testing.T)) calibration {
	t.Run(c.Product+" "+c.Tile, func(t *testing.T) {
		only(t)
		c.Full = speed(t, device, product, size, size, size)
		c.Single = speed(t, device, product, tile[0], tile[1], size)
		t.Logf("%+v", c)
	})
	return c
}

// speed is GFLOP/s of a product of rows x depth and depth x columns, or of a convolution of about
// that size: the best of three rounds.
func speed(t *testing.T, device tensor.Device, product string, rows, columns, depth int) float64 {
	t.Helper()
	b := graph.New(tensor.Float32)
	var y *graph.Node
	operations := 2 * float64(rows) * float64(columns) * float64(depth)
	if product == "matmul" {
		y = b.Apply(op.MatMul{}, b.State("a", nil, rows, depth), b.State("b", nil, depth, columns))
	} else {
		const side, kernel = 16, 5 // images of 16 x 16, whose borders are padded
		channels, images := max(1, depth/(kernel*kernel)), max(1, columns/(side*side))
		y = b.Apply(op.Conv2D{Stride: op.Square(1), Padding: op.Square(2), Dilation: op.Square(1)},
			b.State("x", nil, images, channels, side, side), b.State("w", nil, rows, channels, kernel, kernel))
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
