package cuda_test

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/cudatest"
	"github.com/pollen-ml/pollen/cuda/internal/plan"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/internal/testenv"
	"github.com/pollen-ml/pollen/tensor"
)

// groupedCases are convolutions of several tiles by wgmma, in addition to packedCases.
var groupedCases = []packedCase{
	{name: "rows and strips", batch: 3, channels: 4, height: 18, width: 19, filters: 5, taps: op.Square(3), stride: op.Square(1), padding: op.Square(1),
		dilation: op.Square(1)},
	{name: "ReLU6", batch: 2, channels: 40, height: 9, width: 16, filters: 66, taps: op.Square(3), stride: op.Square(1), padding: op.Square(1),
		dilation: op.Square(1), first: true, clipped: true},
	{name: "dilation", batch: 2, channels: 9, height: 11, width: 7, filters: 3, taps: [2]int{3, 2}, stride: op.Square(1), padding: [2]int{0, 2},
		dilation: [2]int{1, 2}, first: true},
	{name: "pooled, parts of planes", batch: 2, channels: 3, height: 20, width: 22, filters: 70, taps: op.Square(3), stride: op.Square(1),
		padding: op.Square(1), dilation: op.Square(1), pooled: true, first: true},
}

// wgmmaGPU opens a GPU that has wgmma, or skips the test.
func wgmmaGPU(t *testing.T) tensor.Device {
	t.Helper()
	needs(t, cuda.WGMMAVariable, cuda.PackedVariable)
	device := cudatest.GPU(t, cuda.Options{Precision: cuda.BF16})
	needGroups(t, device)
	return device
}

func needGroups(t *testing.T, device tensor.Device) {
	t.Helper()
	if !hasWGMMA(device) {
		t.Skipf("%s has no wgmma", device.Name())
	}
}

func hasWGMMA(device tensor.Device) bool {
	return strings.Contains(device.Name(), "compute capability 9.0,")
}

// TestGroupedConvolutions compares convolutions by wgmma with the host's, to the bit, on numbers
// whose sums are exact. On other numbers it compares them with convolutions by mma.sync, on the
// emulated GPU also to the bit.
func TestGroupedConvolutions(t *testing.T) {
	exact := func(i int) float64 { return float64(i%8-4) / 4 }
	rounded := func(i int) float64 { return math.Sin(float64(i % 9973)) }
	device, host := wgmmaGPU(t), tensor.NewHost(1)
	defer host.Close()
	within := 0.0
	if os.Getenv(cudatest.Variable) == cudatest.CUDA {
		within = 2e-5 // NVIDIA does not document the order of adding up products
	}
	cases := slices.DeleteFunc(slices.Concat(packedCases, groupedCases), func(c packedCase) bool {
		return c.stride != op.Square(1) // TestGroupsAreChosen
	})
	for _, c := range testenv.Some(t, 4, cases) {
		t.Run(c.name, func(t *testing.T) {
			want, _ := c.results(t, host, 2, exact)
			var others [][]float64
			t.Run("mma", func(t *testing.T) {
				plan.OnlyPacked(t, cuda.BF16, 0)
				var symbols string
				if others, symbols = c.results(t, device, 1, rounded); strings.Contains(symbols, "group") {
					t.Errorf("without wgmma there are %s", symbols)
				}
			})
			for number, tile := range plan.WGMMATiles() {
				symbol := fmt.Sprintf("conv2d_nhwc_group_%dx%d_bf16", tile[0], tile[1])
				if c.first && number > 0 {
					continue
				}
				t.Run(symbol, func(t *testing.T) {
					plan.OnlyWGMMA(t, number)
					got, symbols := c.results(t, device, 1, rounded)
					rest, bias := c.apartFromBias(got)
					otherRest, otherBias := c.apartFromBias(others)
					closeTo(t, rest, otherRest, within)
					if c.pooled {
						closeTo(t, bias, otherBias, 2e-5) // windows are summed in another order
					} else {
						closeTo(t, bias, otherBias, within)
					}
					if n := strings.Count(symbols, symbol); n != 2 {
						t.Errorf("%d of %s, want both directions: %s", n, symbol, symbols)
					}
					if number > 0 {
						return
					}
					closeTo(t, [][]float64{c.launched(t, device, rounded)}, got, 0)
					got, symbols = c.results(t, device, 2, exact)
					c.check(t, symbols, "chunks_bf16")
					closeTo(t, got, want, 0)
				})
			}
		})
	}
}

// apartFromBias divides results into the biases' gradients and the rest.
func (c packedCase) apartFromBias(results [][]float64) (rest, bias [][]float64) {
	begin := c.batch*c.channels*c.height*c.width + c.filters*c.channels*c.taps[0]*c.taps[1]
	for _, chain := range results {
		end := begin + c.filters
		rest, bias = append(rest, slices.Concat(chain[:begin], chain[end:])), append(bias, chain[begin:end])
	}
	return rest, bias
}

// TestWithoutWgmma switches wgmma off. mma.sync must give the same results up to the order of sums.
func TestWithoutWgmma(t *testing.T) {
	needs(t, cuda.PackedVariable)
	rounded := func(i int) float64 { return math.Sin(float64(i % 9973)) }
	c := packedCase{batch: 2, channels: 64, height: 16, width: 16, filters: 64, taps: op.Square(3), stride: op.Square(1), padding: op.Square(1),
		dilation: op.Square(1)}
	var got [2][][]float64
	for i, set := range []string{"", "off"} {
		t.Run(set, func(t *testing.T) {
			switchTo(t, cuda.WGMMAVariable, set)
			device := fewMultiprocessors(t, cuda.Options{Precision: cuda.BF16})
			needGroups(t, device)
			var symbols string
			got[i], symbols = c.results(t, device, 1, rounded)
			if n := strings.Count(symbols, "conv2d_nhwc_group"); n != 3-3*i || (strings.Count(symbols, "chunks") > 0) != (i == 0) {
				t.Errorf("the kernels are %s", symbols)
			}
		})
	}
	if !t.Failed() && got[0] != nil {
		closeTo(t, got[1], got[0], 2e-5)
	}
}
