package cuda_test

import (
	"math"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/internal/plan"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/internal/testenv"
	"github.com/pollen-ml/pollen/tensor"
)

const wgmmaFilterKernel = "conv2d_nhwc_group_filter_bf16"

// filterCases are convolutions whose filters' gradients wgmma can compute.
var filterCases = []packedCase{
	{name: "pooled", batch: 3, channels: 12, height: 10, width: 14, filters: 33, taps: op.Square(3), stride: op.Square(1), padding: op.Square(1),
		dilation: op.Square(1), pooled: true},
	{name: "no padding", batch: 2, channels: 3, height: 7, width: 20, filters: 4, taps: [2]int{2, 5}, stride: op.Square(1), padding: op.Square(0),
		dilation: op.Square(1)},
	{name: "taps of several blocks", batch: 3, channels: 5, height: 5, width: 14, filters: 67, taps: op.Square(5), stride: op.Square(1),
		padding: op.Square(2), dilation: op.Square(1)},
	{name: "blocks of channels, two steps of a row", batch: 2, channels: 67, height: 6, width: 30, filters: 3, taps: op.Square(3), stride: op.Square(1),
		padding: op.Square(1), dilation: op.Square(1)},
	{name: "dilation", batch: 2, channels: 9, height: 11, width: 13, filters: 3, taps: op.Square(3), stride: op.Square(1), padding: [2]int{1, 2},
		dilation: [2]int{1, 2}},
	{name: "nothing around the gradient", batch: 3, channels: 2, height: 5, width: 14, filters: 3, taps: [2]int{1, 3}, stride: op.Square(1),
		padding: [2]int{0, 2}, dilation: op.Square(1)},
}

// TestGroupedFilters compares gradients of filters by wgmma with the host's, to the bit, on numbers
// whose sums are exact. On other numbers it compares them with those by mma.sync, up to the order
// of sums. They must be the same for any number of chains, and if launches run on their own.
func TestGroupedFilters(t *testing.T) {
	exact := func(i int) float64 { return float64(i%8-4) / 4 }
	rounded := func(i int) float64 { return math.Sin(float64(i % 9973)) }
	device, host := wgmmaGPU(t), tensor.NewHost(1)
	defer host.Close()
	inTurn, apart := 0, 0
	for _, c := range testenv.Some(t, 2, filterCases) {
		t.Run(c.name, func(t *testing.T) {
			want, _ := c.results(t, host, 2, exact)
			var others [][]float64
			t.Run("mma", func(t *testing.T) {
				plan.OnlyWGMMA(t, 0)
				var symbols string
				if others, symbols = c.results(t, device, 1, rounded); strings.Contains(symbols, wgmmaFilterKernel) || !strings.Contains(symbols, "filter_chunks") {
					t.Errorf("without wgmma there are %s", symbols)
				}
			})
			plan.OnlyWGMMAFilters(t)
			one, symbols := c.results(t, device, 1, rounded)
			if strings.Count(symbols, wgmmaFilterKernel) != 1 || strings.Count(symbols, "nhwc_pack") != 4 {
				t.Errorf("the kernels are %s", symbols)
			}
			closeTo(t, one, others, 2e-5)
			closeTo(t, [][]float64{c.launched(t, device, rounded)}, one, 0)
			got, _ := c.results(t, device, 2, exact)
			closeTo(t, got, want, 0)
			program, sizes := c.program(t, rounded)
			for _, chains := range []int{1, 9} {
				loaded := &catching{Device: device}
				session, err := program.Load(loaded, graph.LoadOptions{Seed: 1, Chains: chains})
				if err != nil {
					t.Fatal(err)
				}
				if cuda.Blocks(loaded.runner, wgmmaFilterKernel)[1] > 1 {
					apart++
				} else {
					inTurn++
				}
				if chains > 1 {
					if err := session.Run(1); err != nil {
						t.Fatal(err)
					}
					closeTo(t, [][]float64{outputs(t, session, 0, sizes)}, one, 0)
				}
				session.Close()
			}
		})
	}
	if testenv.All(t) && (inTurn == 0 || apart == 0) {
		t.Errorf("slices are added in turn %d times, and apart %d times", inTurn, apart)
	}
}
