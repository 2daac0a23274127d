// Command mixture samples the posterior of the tied means of two Gaussians (Welling and Teh 2011, section 5.1) with thousands of Langevin
// chains at once, and compares them with exact numbers. The posterior has two modes; a single chain mistakes one of them for all.
//
// Within their 300 steps too few of the chains cross from mode to mode: 1024 that all start at (1, 1) have P(theta2>0) = 0.85 in the end.
// What puts the right share into either mode is that they start at draws from the prior, to which the modes are nearly alike.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/pollen-ml/pollen/distributions"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/report"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

func main() {
	folder := flag.String("folder", ".", "where mixture.png goes")
	flag.Parse()
	if err := run(os.Stdout, *folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(out io.Writer, folder string) error {
	data := observations()
	truth, levels := exact(data)
	many, err := sample(data, setting{chains: 4096, steps: 300, draws: 8, spacing: 25, first: 0.012, last: 0.002, dispersed: true})
	if err != nil {
		return err
	}
	one, err := sample(data, setting{chains: 1, steps: 10000, draws: 500, spacing: 10, first: 0.005, last: 0.00005})
	if err != nil {
		return err
	}
	table := report.NewTable("", report.Column{Title: "E[theta1]", Format: "%.3f"}, report.Column{Title: "E[theta2]", Format: "%.3f"},
		report.Column{Title: "P(theta2>0)", Format: "%.3f"})
	for _, row := range []struct {
		name string
		summary
	}{{"exact", truth}, {"4096 chains", many.summary()}, {"one chain", one.summary()}} {
		if err := table.Add(row.name, row.mean1, row.mean2, row.positive); err != nil {
			return err
		}
	}
	if err := table.WriteText(out); err != nil {
		return err
	}
	fmt.Fprintln(out, "Errors of 4096 independent draws are about 0.012, 0.022 and 0.008. The one chain, with the published step sizes, is wrong because")
	fmt.Fprintln(out, "these shrink before it crosses to the other mode often enough; the many have starts on both sides.")
	last := len(many.theta1) - 4096
	figure, err := report.Plane("theta1", "theta2", []report.Levels{levels}, []report.Track{
		{Method: "4096 chains", X: many.theta1[last:], Y: many.theta2[last:]}, {Method: "one chain", X: one.theta1, Y: one.theta2},
	})
	if err != nil {
		return err
	}
	return figure.Save(filepath.Join(folder, "mixture.png"))
}

// setting says how chains run: with step sizes that fall from first to last, and states to be kept at the end, spacing steps apart.
type setting struct {
	chains, steps, draws, spacing int
	first, last                   float64
	dispersed                     bool // start at draws from the prior instead of (1, 1)
}

// states are those of all chains, one step after the other.
type states struct{ theta1, theta2 []float64 }

// sample runs SGLD with the gradient of all data. The prior is theta1 ~ N(0, 10), theta2 ~ N(0, 1).
func sample(data []float64, s setting) (kept states, err error) {
	b := graph.New(tensor.Float32)
	start := func(_ uint64, chain uint32, stream uint16, _ tensor.Shape, values []float64) {
		values[0] = 1
		if s.dispersed {
			random.Normals(values, 0, random.Address{Seed: 1, Chain: chain, Stream: stream})
			values[0] *= math.Sqrt(10)
		}
	}
	theta1, theta2 := b.Parameter("theta1", start, 1), b.Parameter("theta2", start, 1)
	deviation := distributions.Number(math.Sqrt2)
	likelihood := distributions.Mixture{Components: []distributions.Distribution{
		distributions.Normal{Mean: distributions.Node(theta1), Deviation: deviation},
		distributions.Normal{Mean: distributions.Node(b.Apply(op.Add{}, theta1, theta2)), Deviation: deviation},
	}}
	loss := b.Apply(op.Negate{}, b.Apply(op.Mean{}, likelihood.LogProb(b, b.Table("data", data))))
	posterior := langevin.Posterior{DataSize: len(data), Layers: map[string]langevin.Prior{
		"theta1": langevin.Gaussian(math.Sqrt(10)), "theta2": langevin.Gaussian(1),
	}}
	sizes, err := optimizers.Polynomial{First: s.first, Last: s.last, Exponent: 0.55}.Rates(s.steps)
	if err != nil {
		return kept, err
	}
	if err := langevin.Attach(b, langevin.SGLD{}, posterior, loss, sizes, slices.Repeat([]float64{1}, s.steps)); err != nil {
		return kept, err
	}
	program, err := b.Compile()
	if err != nil {
		return kept, err
	}
	host := tensor.NewHost(0)
	defer host.Close()
	session, err := program.Load(host, graph.LoadOptions{Seed: 1, Chains: s.chains})
	if err != nil {
		return kept, err
	}
	defer session.Close()

	plan := langevin.Plan{Steps: s.steps, BurnIn: s.steps - s.draws*s.spacing, Thinning: s.spacing}
	err = plan.Run(context.Background(), session, graph.MetricRows, func(p langevin.Progress) error {
		for chain := 0; p.Sample && chain < s.chains; chain++ {
			var theta [2][1]float32
			for i, name := range []string{"theta1", "theta2"} {
				if err := graph.Read(session, name, chain, 0, theta[i][:]); err != nil {
					return err
				}
			}
			kept.theta1 = append(kept.theta1, float64(theta[0][0]))
			kept.theta2 = append(kept.theta2, float64(theta[1][0]))
		}
		return nil
	})
	return kept, err
}
