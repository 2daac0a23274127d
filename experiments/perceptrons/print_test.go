package main

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/langevin"
)

func TestMeanAndError(t *testing.T) {
	of := func(values ...float64) string {
		var results []*result
		for _, v := range values {
			results = append(results, &result{Average: scores{Error: v}})
		}
		return meanAndError("%.3f", results, func(r *result) float64 { return r.Average.Error })
	}
	// The standard error of 1, 2, 3 is the standard deviation 1 over the root of 3.
	for got, want := range map[string]string{of(2): "2.000", of(1, 2, 3): "2.000 ± 0.577", of(4, 4): "4.000 ± 0.000"} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The paper's settings: 100 epochs of MNIST are 60000 steps, with rates halved every 20 epochs, and
// samples of steps 600, 900, ...
func TestCellSettings(t *testing.T) {
	c := cell{Method: "psgld", DataSize: 60000, Width: 400, Temperature: 1. / 60000, Epochs: 100, Rate: 5e-4, Chain: 2}
	spec, err := c.spec().Resolve()
	if err != nil {
		t.Fatal(err)
	}
	if c.steps() != 60000 || c.samples() != 199 || spec.BurnInSteps != 300 || spec.Thinning != 300 || spec.BurnIn != nil || spec.Samples != 0 {
		t.Errorf("%d steps, %d samples of %+v, want 60000, 199, and one per 300 steps", c.steps(), c.samples(), spec)
	}
	rates, err := spec.Schedule.Rates(c.steps())
	if err != nil {
		t.Fatal(err)
	}
	for step, want := range map[int]float64{0: 5e-4, 11999: 5e-4, 12000: 2.5e-4, 59999: 5e-4 / 16} {
		if math.Abs(rates[step]-want) > 1e-18 {
			t.Errorf("rate %v at step %d, want %v", rates[step], step, want)
		}
	}
	if want := bayes.Method(langevin.PSGLD{Alpha: 0.99, Lambda: 1e-5, Gamma: langevin.GammaNone}); spec.Method != want {
		t.Errorf("%+v, want %+v", spec.Method, want)
	}
	if spec.Batch != 100 || *spec.Prior != langevin.Gaussian(1) || *spec.Temperature != 1./60000 || spec.FirstChain != 2 || spec.Chains != 1 {
		t.Errorf("%+v, want the paper's batch, prior and temperature, and chain 2", spec)
	}
	if want := "psgld-h400-T1.67e-05-chain2"; c.String() != want {
		t.Errorf("%q, want %q", c, want)
	}
	c.Method, c.Temperature = "sgd", 0
	if spec, err = c.spec().Resolve(); err != nil || *spec.BurnIn != 0 || spec.Samples != 1 || spec.Method != bayes.Method(langevin.SGLD{}) {
		t.Errorf("sgd: %+v (%v), want its last state", spec, err)
	}
}

// Rows are in the order of the flags, whatever the order in which cells were finished.
func TestPrintTable(t *testing.T) {
	digits := &datasets.Dataset{Channels: 1, Height: 28, Width: 28, Classes: 10}
	table := &study{
		widths: []int{400}, titles: map[cell]string{}, order: map[cell]int{}, rate: 0.2, preconditioned: 5e-4, epochs: 100, train: digits,
	}
	var results []*result
	for i, method := range []string{"psgld", "sgd"} {
		for chain := range 2 {
			c := cell{Method: method, Data: "mnist", Width: 400, Temperature: 1. / 60000, DataSize: 60000, Chain: chain}
			table.titles[c.row()], table.order[c.row()] = methodOf[method].title, i
			score := scores{Error: 0.01 * float64(1+chain), NLL: 0.05}
			results = append([]*result{{Cell: c, Average: score, Equal: score, Last: score}}, results...)
		}
	}
	var out bytes.Buffer
	if err := table.print(results, &out); err != nil {
		t.Fatal(err)
	}
	got, _, _ := strings.Cut(out.String(), "\nMeans over")
	want := `784-400-400-10  test error %              NLL  equal weights %  last state %  seeds  paper %
--------------------------------------------------------------------------------------------
pSGLD            1.50 ± 0.50  0.0500 ± 0.0000      1.50 ± 0.50   1.50 ± 0.50      2     1.40
SGD              1.50 ± 0.50  0.0500 ± 0.0000      1.50 ± 0.50   1.50 ± 0.50      2     1.72
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
