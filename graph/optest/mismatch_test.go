package optest

import (
	"math"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/tensor"
)

func TestClose(t *testing.T) {
	nan, infinity := math.NaN(), math.Inf(1)
	for _, test := range []struct {
		name      string
		got, want []float64
		tol       Tol
		close     bool
	}{
		{"equal", []float64{1, -2, 0}, []float64{1, -2, 0}, Tol{}, true},
		{"nothing", nil, nil, Tol{}, true},
		{"zeros of both signs", []float64{0}, []float64{math.Copysign(0, -1)}, Tol{}, true},
		{"one ulp without tolerance", []float64{math.Nextafter(1, 2)}, []float64{1}, Tol{}, false},
		{"within relative", []float64{100.9}, []float64{100}, Tol{Rel: 0.01}, true},
		{"beyond relative", []float64{101.1}, []float64{100}, Tol{Rel: 0.01}, false},
		{"within absolute", []float64{0.009}, []float64{0}, Tol{Abs: 0.01}, true},
		{"relative to nothing", []float64{0.009}, []float64{0}, Tol{Rel: 1}, false},
		{"infinities", []float64{infinity}, []float64{infinity}, Tol{}, true},
		{"infinities of both signs", []float64{infinity}, []float64{-infinity}, Tol{Abs: infinity}, false},
		{"infinity and a number", []float64{infinity}, []float64{1}, Tol{Abs: 1, Rel: 1}, false},
		{"a number and infinity", []float64{1}, []float64{infinity}, Tol{Abs: 1, Rel: 1}, false},
		{"NaN got", []float64{nan}, []float64{1}, Tol{Abs: infinity}, false},
		{"NaN wanted", []float64{1}, []float64{nan}, Tol{Abs: 1}, false},
		{"NaN and NaN", []float64{nan}, []float64{nan}, Tol{Abs: 1}, false},
		{"too short", []float64{1}, []float64{1, 2}, Tol{Abs: 9}, false},
	} {
		if err := Close(test.got, test.want, test.tol); (err == nil) != test.close {
			t.Errorf("%s: got error %v, want close: %v", test.name, err, test.close)
		}
	}
}

func TestCloseTellsTheWorst(t *testing.T) {
	err := Close([]float64{1, 2.5, 1 + 0x1p-22, 4}, []float64{1, 2, 1, 4.25}, Tol{Rel: 0x1p-24})
	if err == nil || !strings.Contains(err.Error(), "3 of 4") || !strings.Contains(err.Error(), "element 1: got 2.5, want 2") {
		t.Error(err)
	}
	for _, test := range []struct {
		got, want float64
		ulps      string
	}{
		{1 + 0x1p-22, 1, "(2 ulp"},               // a float32
		{1 + 0x1p-50, 1, "(4 ulp"},               // no float32
		{-0x1p-149, 0x1p-149, "(2 ulp"},          // across zero
		{math.NaN(), 1, "(NaN ulp"},              //
		{math.Nextafter(2, 0), 2, "(1 ulp"},      // across a power of two
		{float64(float32(0.1)), 0.1, "(0 ulp"},   // the nearest float32
		{math.Inf(1), math.MaxFloat32, "(1 ulp"}, //
		{0x1p-1074, -0x1p-1074, "(2 ulp"},        // the smallest float64
	} {
		err := Close([]float64{test.got}, []float64{test.want}, Tol{})
		if err == nil || !strings.Contains(err.Error(), test.ulps) {
			t.Errorf("%v for %v: got %v, want %s", test.got, test.want, err, test.ulps)
		}
	}
}

func TestSumTol(t *testing.T) {
	tol := SumTol(tensor.Float32, 100, []float64{3, -4, 0, 0})
	if want := 40 * 0x1p-23; tol.Rel != want || tol.Abs != 2.5*want {
		t.Errorf("got %v, want Rel %v and Abs 2.5 times that", tol, want)
	}
	if tol := SumTol(tensor.Float64, 0, nil); tol.Rel != 4*0x1p-52 || tol.Abs != 0 {
		t.Errorf("got %v for no terms", tol)
	}
	// Neither an infinity nor the square of a large number makes the tolerance infinite.
	for _, want := range [][]float64{{1, math.Inf(-1)}, {1e200, 1}} {
		got := []float64{want[0] / 2, want[1]}
		if err := Close(got, want, SumTol(tensor.Float64, 1, want)); err == nil {
			t.Errorf("%v is close to %v", got, want)
		}
	}
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float64} {
		next := math.Nextafter(1, 2)
		if dtype == tensor.Float32 {
			next = float64(math.Nextafter32(1, 2))
		}
		if got := Epsilon(dtype); got != next-1 {
			t.Errorf("epsilon of %v is %v, want %v", dtype, got, next-1)
		}
	}
}
