package main

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

// With Student's t the coefficients are found in spite of the wrong rows; NUTS and SGLD agree on
// means and standard deviations. Normal noise gives standard deviations that are far too large.
func TestFits(t *testing.T) {
	fits, err := fitAll(300, 40_000)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range coefficients {
		normal, err := summary(fits[0].traces, i)
		if err != nil {
			t.Fatal(err)
		}
		nuts, err := summary(fits[1].traces, i)
		if err != nil {
			t.Fatal(err)
		}
		sgld, err := summary(fits[2].traces, i)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(nuts.Mean-want) > 4*nuts.Std || nuts.Std > 0.05 || nuts.RHat > 1.05 {
			t.Errorf("%s: NUTS has %v, want %v", names[i], nuts, want)
		}
		if math.Abs(sgld.Mean-nuts.Mean) > 0.3*nuts.Std || math.Abs(sgld.Std/nuts.Std-1) > 0.15 {
			t.Errorf("%s: SGLD has %v, NUTS %v", names[i], sgld, nuts)
		}
		if normal.Std < 3*nuts.Std {
			t.Errorf("%s: normal noise has a standard deviation of %v, Student's t %v", names[i], normal.Std, nuts.Std)
		}
	}
}

func TestRun(t *testing.T) {
	var out bytes.Buffer
	if err := run(&out, 50, 5000); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"slope 1       1.00", "intercept", "effective draws"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, out.String())
		}
	}
}
