package cuda_test

import (
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/cuda/internal/plan"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// TestGroupedGradientsWithStrides: the image's gradient of a convolution with strides reads a
// packed copy with zeros in between, also by wgmma.
func TestGroupedGradientsWithStrides(t *testing.T) {
	exact := func(i int) float64 { return float64(i%8-4) / 4 }
	device, host := wgmmaGPU(t), tensor.NewHost(1)
	defer host.Close()
	for _, c := range packedCases {
		if c.stride == op.Square(1) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			want, _ := c.results(t, host, 2, exact)
			plan.OnlyWGMMA(t, 0)
			got, symbols := c.results(t, device, 2, exact)
			closeTo(t, got, want, 0)
			if !strings.Contains(symbols, "nhwc_pack_spread_chunks_bf16") {
				t.Errorf("no copy with zeros in between: %s", symbols)
			}
		})
	}
}
