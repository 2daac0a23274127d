package cuda_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/cudatest"
	"github.com/pollen-ml/pollen/cuda/internal/plan"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// TestFewChannels compares convolutions of 16 and 32 channels in bf16 with another kernel's, to the
// bit, on numbers whose sums are exact. The host's are exact, too, unless it uses Winograd's
// algorithms. The cases have several bands of rows per image, numbers of pixels that are not
// multiples of 16, and several bands per block.
func TestFewChannels(t *testing.T) {
	exact := func(i int) float64 { return float64(i%8-4) / 4 }
	rounded := func(i int) float64 { return math.Sin(float64(i % 9973)) }
	needs(t, cuda.PackedVariable)
	device, host := cudatest.GPU(t, cuda.Options{Precision: cuda.BF16}), tensor.NewHost(1)
	defer host.Close()
	one := op.Square(1)
	for _, c := range []packedCase{
		{batch: 1, channels: 16, height: 17, width: 32},
		{batch: 2, channels: 16, height: 3, width: 12},
		{batch: 1, channels: 32, height: 5, width: 20},
		{batch: 129, channels: 16, height: 1, width: 4, clipped: true},
		{batch: 3, channels: 16, height: 3, width: 16, rectified: true},
	} {
		c.filters, c.taps, c.stride, c.padding, c.dilation = c.channels, op.Square(3), one, one, one
		t.Run(fmt.Sprintf("%dx%dx%d", c.channels, c.height, c.width), func(t *testing.T) {
			var want, others [][]float64
			t.Run("others", func(t *testing.T) {
				plan.OnlyPacked(t, cuda.BF16, 0)
				var symbols string
				if want, symbols = c.results(t, device, 2, exact); strings.Contains(symbols, "few") {
					t.Errorf("with other kernels there are %s", symbols)
				}
				others, _ = c.results(t, device, 1, rounded)
				if c.width < 32 {
					hosts, _ := c.results(t, host, 2, exact)
					closeTo(t, want, hosts, 0)
				}
			})
			got, symbols := c.results(t, device, 2, exact)
			closeTo(t, got, want, 0)
			forward := 2
			if c.clipped {
				forward = 1 // there is no epilogue for ReLU6
			}
			symbol := fmt.Sprintf("conv2d_few_%d_bf16", c.channels)
			if n := strings.Count(symbols, symbol); n != forward || !strings.Contains(symbols, fmt.Sprintf("conv2d_few_filter_%d_bf16", c.channels)) {
				t.Errorf("%d of %s, want %d, and its filter's gradient: %s", n, symbol, forward, symbols)
			}
			got, _ = c.results(t, device, 1, rounded)
			closeTo(t, [][]float64{c.launched(t, device, rounded)}, got, 0)
			closeTo(t, got, others, 2e-5)
		})
	}
}
