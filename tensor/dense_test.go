package tensor

import (
	"testing"

	dense "gorgonia.org/tensor"
)

// The memory that goes into a Gorgonia tensor is the memory that comes out.
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
	back, err := FromDense[T](d)
	if err != nil {
		t.Fatal(dtype, err)
	}
	if len(back) != len(values) || &back[0] != &values[0] {
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
	if one, err := FromDense[T](scalar); err != nil || len(one) != 1 || one[0] != values[0] {
		t.Errorf("%v: a scalar comes out as %v (%v)", dtype, one, err)
	}
}

func TestFromDenseRefusesOtherLayouts(t *testing.T) {
	d := dense.New(dense.WithShape(3, 4), dense.WithBacking(make([]float32, 12)))
	_, err := FromDense[float64](d)
	wantError(t, "another type", err, "holds float32, wants float64")

	column, err := d.Slice(nil, dense.S(1))
	if err != nil {
		t.Fatal(err)
	}
	_, err = FromDense[float32](column.(*dense.Dense))
	wantError(t, "a column", err, "not contiguous")

	rows, err := d.Slice(dense.S(1, 3))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := FromDense[float32](rows.(*dense.Dense)); err != nil || len(got) != 8 {
		t.Errorf("two whole rows come out as %v (%v)", got, err)
	}

	if err := d.T(); err != nil {
		t.Fatal(err)
	}
	_, err = FromDense[float32](d)
	wantError(t, "a transposed view", err, "not contiguous")

	columns := dense.New(dense.WithShape(3, 4), dense.AsFortran(make([]float32, 12)))
	_, err = FromDense[float32](columns)
	wantError(t, "a column-major tensor", err, "not contiguous in rows")
}
