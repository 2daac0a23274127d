package main

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pollen-ml/pollen/langevin"
)

func TestMeanAndError(t *testing.T) {
	of := func(values ...float64) string {
		var results []*cellResult
		for _, v := range values {
			results = append(results, &cellResult{Average: cellScores{Error: v}})
		}
		return meanAndError("%.3f", results, func(r *cellResult) float64 { return r.Average.Error })
	}
	// The standard error of 1, 2, 3 is the standard deviation 1 over the root of 3.
	for got, want := range map[string]string{of(2): "2.000", of(1, 2, 3): "2.000 ± 0.577", of(4, 4): "4.000 ± 0.000"} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The paper's settings: 100 epochs of MNIST are 60000 steps, with rates halved every 20 epochs, and samples of steps 600, 900, ...
func TestCellSettings(t *testing.T) {
	c := cell{Method: "psgld", DataSize: 60000, Width: 400, Temperature: 1. / 60000, Epochs: 100, Rate: 5e-4, Chain: 2}
	if want := (langevin.Plan{Steps: 60000, BurnIn: 300, Thinning: 300}); c.plan() != want || c.plan().Samples() != 199 {
		t.Errorf("%+v of %d samples, want %+v", c.plan(), c.plan().Samples(), want)
	}
	rates, err := c.rates()
	if err != nil {
		t.Fatal(err)
	}
	for step, want := range map[int]float64{0: 5e-4, 11999: 5e-4, 12000: 2.5e-4, 59999: 5e-4 / 16} {
		if math.Abs(rates[step]-want) > 1e-18 {
			t.Errorf("rate %v at step %d, want %v", rates[step], step, want)
		}
	}
	if got, want := c.sampler(), (langevin.PSGLD{Alpha: 0.99, Lambda: 1e-5, Gamma: langevin.GammaNone}); got != langevin.Sampler(want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if want := "psgld-h400-T1.67e-05-chain2"; c.String() != want {
		t.Errorf("%q, want %q", c, want)
	}
	c.Method, c.Temperature = "sgd", 0
	if got := c.plan().Samples(); got != 1 || c.sampler() != langevin.Sampler(langevin.SGLD{}) {
		t.Errorf("sgd: %d samples by %T, want its last state", got, c.sampler())
	}
}

// Rows are in the order of the flags, whatever the order in which cells were finished.
func TestPrintTable(t *testing.T) {
	table := &comparison{widths: []int{400}, titles: map[cell]string{}, order: map[cell]int{}, rate: 0.2, preconditioned: 5e-4, epochs: 100}
	var results []*cellResult
	for i, method := range []string{"psgld", "sgd"} {
		for chain := range 2 {
			c := cell{Method: method, Data: "mnist", Width: 400, Chain: chain}
			table.titles[c.row()], table.order[c.row()] = tableMethods[method].title, i
			score := cellScores{Error: 0.01 * float64(1+chain), NLL: 0.05}
			results = append([]*cellResult{{Cell: c, Average: score, Equal: score, Last: score}}, results...)
		}
	}
	c, out, _, _ := testConsole()
	if err := table.print(results, c); err != nil {
		t.Fatal(err)
	}
	got, _, _ := strings.Cut(out.String(), "Means over")
	want := `784-400-400-10  test error %              NLL  equal weights %  last state %  seeds  paper %
--------------------------------------------------------------------------------------------
pSGLD            1.50 ± 0.50  0.0500 ± 0.0000      1.50 ± 0.50   1.50 ± 0.50      2     1.40
SGD              1.50 ± 0.50  0.0500 ± 0.0000      1.50 ± 0.50   1.50 ± 0.50      2     1.72
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
