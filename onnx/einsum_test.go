package onnx

import (
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
)

// numbered returns an array of small integers.
func numbered(shape []int, seed int) *ndarray {
	a := &ndarray{shape, Float32, make([]float64, product(shape))}
	for i := range a.values {
		a.values[i] = float64((5*i+seed)%7 - 3)
	}
	return a
}

// slowEinsum adds the products of the operands' elements for every combination of indices. The
// equation has an output and no ellipsis.
func slowEinsum(equation string, operands []*ndarray) *ndarray {
	left, right, _ := strings.Cut(equation, "->")
	size, letters := map[rune]int{}, []rune{}
	for i, part := range strings.Split(left, ",") {
		for axis, l := range []rune(part) {
			if size[l] == 0 {
				letters = append(letters, l)
			}
			size[l] = max(size[l], operands[i].shape[axis])
		}
	}
	extent := func(labels []rune) []int {
		shape := make([]int, len(labels))
		for i, l := range labels {
			shape[i] = size[l]
		}
		return shape
	}
	y := &ndarray{extent([]rune(right)), Float32, make([]float64, product(extent([]rune(right))))}
	all, index := extent(letters), make([]int, len(letters))
	offset := func(labels string, shape []int) int {
		at := 0
		for axis, l := range []rune(labels) {
			at = at*shape[axis] + index[slices.Index(letters, l)]%shape[axis] // an extent of 1 broadcasts
		}
		return at
	}
	for range product(all) {
		term := 1.0
		for i, part := range strings.Split(left, ",") {
			term *= operands[i].values[offset(part, operands[i].shape)]
		}
		y.values[offset(right, y.shape)] += term
		advance(index, all)
	}
	return y
}

func TestEinsum(t *testing.T) {
	for _, row := range []struct {
		equation string
		shapes   [][]int // of x and of constants
		plain    string  // the same with an output and without an ellipsis, if not equation
	}{
		{"bij,bjk->bik", [][]int{{2, 3, 4}, {2, 4, 5}}, ""},
		{"bij,bkj->bik", [][]int{{2, 3, 4}, {2, 5, 4}}, ""},
		{"bji,bjk->bik", [][]int{{2, 4, 3}, {2, 4, 5}}, ""},
		{"bhwc,hkc->bhwk", [][]int{{2, 3, 4, 5}, {3, 6, 5}}, ""},
		{"bhwc,wkc->bhwk", [][]int{{2, 3, 4, 5}, {4, 6, 5}}, ""},
		{"bij,jk->kbi", [][]int{{2, 3, 4}, {4, 5}}, ""},
		{"bi,bi->bi", [][]int{{2, 3}, {2, 3}}, ""},
		{"bi,bi->b", [][]int{{2, 3}, {2, 3}}, ""},
		{"bi,bj->bij", [][]int{{2, 3}, {2, 4}}, ""},
		{"bij,bkl->b", [][]int{{2, 3, 4}, {2, 2, 5}}, ""},
		{"bij,bjk,kl->bil", [][]int{{2, 3, 4}, {2, 4, 5}, {5, 2}}, ""},
		{"bij,j,bj->bi", [][]int{{2, 3, 4}, {4}, {2, 4}}, ""},
		{"bij->jb", [][]int{{2, 3, 4}}, ""},
		{"bij->", [][]int{{2, 3, 4}}, ""},
		{"bij->bji", [][]int{{2, 3, 4}}, ""},
		{"bii->bi", [][]int{{2, 3, 3}}, ""},
		{"ibi->b", [][]int{{3, 2, 3}}, ""},
		{"iibi->bi", [][]int{{3, 3, 2, 3}}, ""},
		{"biij,jk->bik", [][]int{{2, 3, 3, 4}, {4, 2}}, ""},
		{"bij,bjk->bik", [][]int{{2, 3, 1}, {2, 4, 5}}, ""},
		{"bij,bjk->bik", [][]int{{2, 3, 4}, {1, 4, 5}}, ""},
		{" b i j , b j k -> b i k ", [][]int{{2, 3, 4}, {2, 4, 5}}, "bij,bjk->bik"},
		{"bij,jk", [][]int{{2, 3, 4}, {4, 5}}, "bij,jk->bik"},
		{"bji", [][]int{{2, 3, 4}}, "bji->bij"},
		{"zAb", [][]int{{2, 3, 4}}, "zAb->Abz"},
		{"bii", [][]int{{2, 3, 3}}, "bii->b"},
		{"...ij,...jk->...ik", [][]int{{2, 2, 3, 4}, {2, 2, 4, 5}}, "abij,abjk->abik"},
		{"...ij,...jk->...ik", [][]int{{2, 2, 3, 4}, {2, 4, 5}}, "abij,bjk->abik"},
		{"...ij,jk", [][]int{{2, 2, 3, 4}, {4, 5}}, "abij,jk->abik"},
		{"i...,j...->...ij", [][]int{{3, 2}, {4, 1}}, "ia,ja->aij"},
		{"b...->b", [][]int{{2, 3, 4}}, "bij->b"},
		{"...->...", [][]int{{2, 3}}, "ab->ab"},
	} {
		names := []string{"x", "a", "c"}
		operands := []*ndarray{numbered(row.shapes[0], 1)}
		var tensors [][]byte
		for i, shape := range row.shapes[1:] {
			operands = append(operands, numbered(shape, i+2))
			tensors = append(tensors, tensorOf(names[i+1], shape, operands[i+1].values...))
		}
		declared := append([]int{-1}, row.shapes[0][1:]...)
		m, err := Read(single("Einsum", map[string]any{"equation": row.equation}, declared, tensors...), nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := evaluate(m, "y", &storedTensor{Type: Float32, Shape: row.shapes[0], floats: operands[0].values})
		if err != nil {
			t.Errorf("%s: %v", row.equation, err)
			continue
		}
		plain := row.plain
		if plain == "" {
			plain = row.equation
		}
		if err := near(got, slowEinsum(plain, operands), 0, 0); err != nil {
			t.Errorf("%s of %v: %v", row.equation, row.shapes, err)
		}
	}
}

// An Einsum that adds up nothing multiplies elements. As a product of matrices of one row and one
// column it would take ten times as long.
func TestEinsumOfElements(t *testing.T) {
	for equation, shape := range map[string][]int{"bi,bi->bi": {2, 3}, "bi,i->bi": {3}, "bi,j->bij": {4}} {
		b := applyTo(t, single("Einsum", map[string]any{"equation": equation}, []int{-1, 3}, tensorOf("a", shape, numbered(shape, 1).values...)), 2, 3)
		if all := b.Applications(); b.Err() != nil || !slices.ContainsFunc(all, func(a graph.Application) bool { return a.Op == op.Multiply{} }) {
			t.Errorf("%s is %v (%v), want a Multiply", equation, all, b.Err())
		}
	}
}

func TestRejectEinsum(t *testing.T) {
	for _, row := range []struct {
		equation string
		other    []int // shape of the second operand; the first is [2 3 4]
		want     string
	}{
		{"", nil, `equation "" must have an operand for each of 2 inputs`},
		{"bij->bi", nil, "an operand for each of 2 inputs"},
		{"bij,bj,k->bi", nil, "an operand for each of 2 inputs"},
		{"bi,j->b", []int{3}, `"bi" in equation "bi,j->b" does not fit shape [2 3 4]`},
		{"bij,...jk->bi", []int{3}, `"...jk" in equation "bij,...jk->bi" does not fit shape [3]`},
		{"bij,j.->bi", []int{4}, `"j." in equation`},
		{"b...i...,i->b", []int{4}, "does not fit shape [2 3 4]"},
		{"bij,j->bk", []int{4}, "must have labels of its operands, each once"},
		{"bij,j->bb", []int{4}, "must have labels of its operands, each once"},
		{"bij,j->b...", []int{4}, ""}, // no axis has the ellipsis
		{"bij,j->bi", []int{5}, "must have the same extent, got 4 and 5"},
		{"bij,jj->bi", []int{4, 5}, "axes 0 and 1 of shape [4 5] have the same label"},
	} {
		tensor := tensorOf("a", row.other, numbered(row.other, 1).values...)
		err := applyTo(t, single("Einsum", map[string]any{"equation": row.equation}, []int{-1, 3, 4}, tensor), 2, 3, 4).Err()
		if row.want == "" {
			if err != nil {
				t.Errorf("%s: %v", row.equation, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: error %v, want %q", row.equation, err, row.want)
		}
	}
}
