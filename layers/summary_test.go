package layers

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// tied is a layer of another package: two products with one matrix, the first of them transposed,
// in no scope.
type tied struct{}

func (tied) Apply(b *graph.Builder, x *graph.Node) *graph.Node {
	w := b.Parameter("tied", nil, graph.ShapeOf(x)[1], 4)
	y := b.Apply(op.MatMul{}, x, w)
	return b.Apply(op.MatMul{TransposeB: true}, y, w)
}

func TestSummaryRows(t *testing.T) {
	s, err := Summarize(Sequential{
		Residual{Body: Sequential{Conv2D{Name: "inner", Filters: 2, Kernel: 3, Padding: 1, NoBias: true}}},
		Flatten{}, tied{},
	}, tensor.Shape{2, 3, 5})
	if err != nil {
		t.Fatal(err)
	}
	want := Summary{
		Parameters: 36 + 120,
		Flops:      2 * (30*18 + 120 + 120),
		Rows: []Row{
			{Name: "inner", Kind: "conv2d", Output: tensor.Shape{2, 3, 5}, Parameters: 36, Flops: 2 * 30 * 18},
			{Name: "residual1", Kind: "add", Output: tensor.Shape{2, 3, 5}},
			{Name: "flatten1", Kind: "view", Output: tensor.Shape{30}},
			{Name: "matmul", Kind: "matmul + matmul", Output: tensor.Shape{30}, Parameters: 120, Flops: 480},
		},
	}
	if d := cmp.Diff(want, s); d != "" {
		t.Errorf("summary (-want +got):\n%s", d)
	}
}

// several is a convolution of groups of channels, and products of several matrices.
type several struct{}

func (several) Apply(b *graph.Builder, x *graph.Node) *graph.Node {
	y := b.Apply(op.GroupedConv2D{Stride: op.Square(1), Dilation: op.Square(1), Groups: 3}, x, b.Parameter("filters", nil, 3, 1, 2, 2)) // [1 3 4 4]
	matrices := b.Apply(op.ViewAs(3, 4, 4), y)
	return b.Apply(op.ViewAs(1, 48), b.Apply(op.BatchMatMul{TransposeB: true}, matrices, matrices))
}

func TestFlopsOfGroups(t *testing.T) {
	s, err := Summarize(several{}, tensor.Shape{3, 5, 5})
	if err != nil {
		t.Fatal(err)
	}
	if want := 2*48*4 + 2*48*4; s.Flops != want {
		t.Errorf("%d flops, want %d for the convolution and the same for the products:\n%v", s.Flops, want/2, s)
	}
}

func TestGrouped(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1 000", 909770: "909 770", 1234567: "1 234 567"} {
		if got := groupDigits(n); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}
