package tensor

import (
	"testing"

	dense "gorgonia.org/tensor"
)

// ToDense does not copy: the Gorgonia tensor and the slice share memory.
func TestDenseSharesMemory(t *testing.T) {
	testDense(t, []float32{1, 2, 3, 4, 5, 6})
	testDense(t, []float64{1, 2, 3, 4, 5, 6})
	testDense(t, []uint8{1, 2, 3, 4, 5, 6})
	testDense(t, []int32{1, 2, 3, 4, 5, 6})
	testDense(t, []uint64{1, 2, 3, 4, 5, 6})
}

func testDense[T Element](t *testing.T, values []T) {
	t.Helper()
	dtype := DTypeOf[T]()
	d, err := ToDense(Shape{2, 3}, values)
	if err != nil {
		t.Fatal(dtype, err)
	}
	if !d.Shape().Eq(dense.Shape{2, 3}) {
		t.Errorf("%v: shape is %v", dtype, d.Shape())
	}
	if back := d.Data().([]T); len(back) != len(values) || &back[0] != &values[0] {
		t.Errorf("%v: the memory is another", dtype)
	}
	values[4] = 9
	if at, err := d.At(1, 1); err != nil || at != any(T(9)) {
		t.Errorf("%v: element [1 1] is %v after a write to the slice (%v)", dtype, at, err)
	}
	if _, err := ToDense(Shape{2, 2}, values); err == nil {
		t.Errorf("%v: six values of shape [2 2] give no error", dtype)
	}
	scalar, err := ToDense(Shape{}, values[:1])
	if err != nil {
		t.Fatal(dtype, err)
	}
	if one := scalar.Data(); one != any(values[0]) {
		t.Errorf("%v: a scalar comes out as %v", dtype, one)
	}
}
