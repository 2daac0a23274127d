package main

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/report"
	"github.com/pollen-ml/pollen/tensor"
)

// drawVariances draws the measured variance of chains on the potential theta^2/2, whose exact value
// is 1, by step size: for SGLD, for the method of Leimkuhler and Matthews, and for a value of Carry
// in between.
func drawVariances(path string) error {
	device := tensor.NewHost(0)
	defer device.Close()
	var curves []report.Curve
	for _, carry := range []float64{0, 0.25, 0.5} {
		c := report.Curve{Method: fmt.Sprintf("Carry %v", carry)}
		for h := 0.1; h < 1.45; h += 0.1 {
			v, err := measuredVariance(device, LeimkuhlerMatthews{Carry: carry}, h)
			if err != nil {
				return err
			}
			c.X, c.Y = append(c.X, h), append(c.Y, v)
		}
		curves = append(curves, c)
	}
	figure, err := report.Curves(report.Axes{X: "step size h", Y: "variance", Target: 1, TargetName: "exact"}, curves)
	if err != nil {
		return err
	}
	return figure.Save(path)
}

// measuredVariance returns the mean square of 20 000 independent elements after 100 steps from 0,
// which is near the stationary variance for h from 0.1 on.
func measuredVariance(device tensor.Device, s LeimkuhlerMatthews, h float64) (float64, error) {
	const n, steps = 20000, 100
	b := graph.New(tensor.Float64)
	w := b.Parameter("w", nil, n)
	// Half of the potential is the likelihood of one example, half is the prior.
	loss := b.Apply(op.Scale{Factor: 0.25}, b.Apply(op.Sum{}, b.Apply(op.Squared{}, w)))
	posterior := langevin.Posterior{DataSize: 1, Prior: langevin.Gaussian(math.Sqrt2)}
	if err := langevin.Attach(b, s, posterior, loss, []float64{h}, []float64{1}); err != nil {
		return 0, err
	}
	program, err := b.Compile()
	if err != nil {
		return 0, err
	}
	session, err := program.Load(device, graph.LoadOptions{Seed: 1, Chains: 1})
	if err != nil {
		return 0, err
	}
	defer session.Close()
	if err := session.Run(steps); err != nil {
		return 0, err
	}
	values := make([]float64, n)
	if err := graph.Read(session, "w", 0, 0, values); err != nil {
		return 0, err
	}
	return floats.Dot(values, values) / n, nil
}
