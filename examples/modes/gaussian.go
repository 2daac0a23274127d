package main

import (
	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/report"
)

// gaussian adds the potential of N(0, diag(0.16, 1)), the example of Li, Chen, Carlson and Carin
// (2016), section 5.1.
func gaussian(b *graph.Builder, theta *graph.Node) *graph.Node {
	squares := b.Apply(op.Multiply{}, b.Apply(op.Squared{}, theta), b.Table("precisions", []float64{1 / 0.16, 1}))
	return b.Apply(op.Scale{Factor: 0.5}, b.Apply(op.Sum{}, squares))
}

// gaussianMethods returns samplers with step sizes at which their relative errors of the variance
// of x are about equal, h k/2 = 6 % for SGLD. BAOAB has no such error.
func gaussianMethods() []method {
	plan := langevin.Plan{Steps: 3000, BurnIn: 1000, Thinning: 4}
	by := func(name string, sampler langevin.Sampler, h float64) method {
		return method{name, setting{potential: gaussian, sampler: sampler, chains: 64, plan: plan, rates: optimizers.Constant{Rate: h}, dispersed: 1}}
	}
	return []method{
		by("SGLD", langevin.SGLD{}, 0.02),
		by("pSGLD", langevin.PSGLD{Alpha: 0.99, Lambda: 1e-5, Gamma: langevin.GammaFrozen, FreezeAt: plan.BurnIn}, 0.05),
		by("SGHMC", langevin.SGHMC{Friction: 0.2}, 0.04),
		by("BAOAB", langevin.BAOAB{Friction: 0.2}, 0.04),
	}
}

// estimates returns the variances (0.16 and 1 are exact), the covariance (0 is exact), and the
// effective number of draws of y in 1000 steps.
func (s states) estimates(plan langevin.Plan) (xx, yy, xy, effective float64, err error) {
	n := float64(len(s.x))
	traces := make([][]float64, s.chains)
	for i := range s.x {
		xx += s.x[i] * s.x[i] / n
		yy += s.y[i] * s.y[i] / n
		xy += s.x[i] * s.y[i] / n
		traces[i%s.chains] = append(traces[i%s.chains], s.y[i])
	}
	effective, _, err = diagnostics.EffectiveSampleSize(traces)
	return xx, yy, xy, effective / float64(s.chains) * 1000 / float64(plan.Steps-plan.BurnIn), err
}

// gaussianTable samples the Gaussian with each of gaussianMethods.
func gaussianTable() (*report.Table, error) {
	table := report.NewTable("", report.Column{Title: "E[x^2]", Format: "%.3f"}, report.Column{Title: "E[y^2]", Format: "%.3f"},
		report.Column{Title: "E[xy]", Format: "%.3f"}, report.Column{Title: "effective draws in 1000 steps", Format: "%.0f"})
	if err := table.Add("exact", 0.16, 1.0, 0.0, "-"); err != nil {
		return nil, err
	}
	for _, m := range gaussianMethods() {
		kept, err := m.sample()
		if err != nil {
			return nil, err
		}
		xx, yy, xy, effective, err := kept.estimates(m.plan)
		if err != nil {
			return nil, err
		}
		if err := table.Add(m.name, xx, yy, xy, effective); err != nil {
			return nil, err
		}
	}
	return table, nil
}
