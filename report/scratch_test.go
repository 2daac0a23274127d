package report

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pollen-ml/pollen/evaluate"
)

func must(t *testing.T, f *Figure, err error, name string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []string{".png", ".svg"} {
		if err := f.Save("/tmp/fig/" + name + e); err != nil {
			t.Fatal(err)
		}
	}
}

func TestScratch(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	n := 6000
	mk := func(noise, decay float64, walk float64) []float64 {
		v := make([]float64, n)
		w := 0.12
		ou := 0.0
		for i := range v {
			w += -decay * (w - 0.031)
			ou += -walk*ou + math.Sqrt(2*walk)*noise*r.NormFloat64()
			v[i] = w + ou
		}
		return v
	}
	f, err := WeightDensity("weight 12 of the first convolution", []Trace{{"SGD", mk(.0012, .0015, .05)}, {"SGLD", mk(.035, .002, .02)}, {"pSGLD", mk(.055, .004, .03)}}, 1, 1000)
	must(t, f, err, "weight")
	conf := func(a float64, n int) []float64 {
		v := make([]float64, n)
		for i := range v {
			v[i] = .1 + .9*math.Pow(r.Float64(), 1/a)
		}
		return v
	}
	f, err = ConfidenceHistogram("MNIST digits", "notMNIST letters", 10, []Confidences{{"SGD", conf(60, 10000), conf(2.3, 5000)}, {"SGLD average", conf(40, 10000), conf(1.3, 5000)}, {"pSGLD average", conf(45, 10000), conf(1.5, 5000)}})
	must(t, f, err, "confidence")
	cal := func(off float64) []evaluate.Bin {
		var p []float64
		var l []byte
		for i := 0; i < 10000; i++ {
			c := .5 + .5*math.Pow(r.Float64(), .1)
			p = append(p, c, 1-c)
			if r.Float64() < c-off*(1-c) {
				l = append(l, 0)
			} else {
				l = append(l, 1)
			}
		}
		b, err := evaluate.EqualWidthBins(p, l, 2)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	f, err = Reliability([]Calibration{{"SGD", cal(.5)}, {"SGLD average", cal(0)}})
	must(t, f, err, "reliability")
	var cs []Curve
	for i, m := range []string{"SGD", "SGLD", "pSGLD", "SGHMC"} {
		c := Curve{Method: m}
		for s := 0; s < 3000; s++ {
			c.X = append(c.X, float64(10*s))
			c.Y = append(c.Y, math.Exp(.3*r.NormFloat64())*(2.3*math.Exp(-float64(s)/200)+.03*float64(i+1)))
		}
		cs = append(cs, c)
	}
	f, err = Curves(Axes{X: "step", Y: "loss per example, nats", LogY: true}, cs)
	must(t, f, err, "loss")
	f, err = Curves(Axes{X: "step", Y: "loss per example, nats", Target: 1, TargetName: "target 1"}, cs)
	must(t, f, err, "loss2")
	var sel []Selection
	for i, m := range []string{"SGD", "SGLD average"} {
		u := make([]float64, 10000)
		ok := make([]bool, 10000)
		for j := range u {
			u[j] = math.Pow(r.Float64(), 8)
			ok[j] = r.Float64() > u[j]*.1*float64(2-i)
		}
		s, err := evaluate.RiskCoverage(u, ok)
		if err != nil {
			t.Fatal(err)
		}
		sel = append(sel, Selection{m, s})
	}
	f, err = RiskCoverage(sel)
	must(t, f, err, "risk")
}
