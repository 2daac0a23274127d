// Command modes tests samplers on 25 modes in the plane (Zhang, Li, Zhang, Chen and Wilson 2020,
// section 5.1), between which the density falls by a factor e^-16.
//
// It prints how many modes each sampler found, the total variation between its frequencies of modes
// and 1/25, the fraction of chains that crossed between modes, and the variance within a mode,
// which is 0.03 exactly. SGLD with small steps finds only the mode where it starts. With large
// steps it finds all, but with five times the variance. Cyclical SGLD and replica exchange find all
// 25 in the right proportions, up to chance. A second table compares four samplers on a narrow
// Gaussian: their moments and how many effective draws 1000 steps give. modes.png shows the last
// draws of three samplers. It takes some seconds.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/report"
)

func main() {
	dir := flag.String("folder", ".", "directory for modes.png")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "modes: takes flags only, got %q\n", flag.Arg(0))
		os.Exit(2)
	}
	if err := run(os.Stdout, *dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// method is a row of the table.
type method struct {
	name string
	setting
}

const (
	small    = "SGLD from one place"
	large    = "SGLD, large steps"
	spread   = "SGLD, dispersed"
	cyclical = "cyclical SGLD"
	short    = "cyclical SGLD, short cycles"
	replicas = "replica exchange"
)

// methods returns the rows of the first table. All chains start at (0, 0), except the dispersed
// ones.
func methods() []method {
	plan := langevin.Plan{Steps: 1000, BurnIn: 500, Thinning: 50}
	list := []method{
		{small, setting{chains: 256, plan: plan, rates: optimizers.Constant{Rate: 0.003}}},
		{large, setting{chains: 256, plan: plan, rates: optimizers.Constant{Rate: 0.05}}},
		{spread, setting{chains: 2048, plan: langevin.Plan{Steps: 400, BurnIn: 200, Thinning: 50}, rates: optimizers.Constant{Rate: 0.003}, dispersed: 5}},
		{short, setting{
			chains: 128, plan: langevin.Plan{Steps: 2000, BurnIn: 60, Thinning: 40, Cycles: 20}, rates: optimizers.Cyclical{Initial: 0.07, Cycles: 20},
		}},
		{cyclical, setting{
			chains: 384, plan: langevin.Plan{Steps: 6000, BurnIn: 100, Thinning: 900, Cycles: 6}, rates: optimizers.Cyclical{Initial: 0.06, Cycles: 6},
		}},
		{replicas, setting{
			chains: 6 * 64, plan: langevin.Plan{Steps: 3000, BurnIn: 1000, Thinning: 50}, rates: optimizers.Constant{Rate: 0.003},
			exchange: langevin.ReplicaExchange{
				Temperatures: []float64{1, 2, 4, 8, 16, 32}, StepFactors: []float64{1, 1.5, 2, 3, 4, 5}, Every: 5, Minibatches: 1,
			},
		}},
	}
	for i := range list {
		list[i].potential, list[i].sampler = latticePotential, langevin.SGLD{}
	}
	return list
}

func latticePotential(b *graph.Builder, theta *graph.Node) *graph.Node {
	return b.Apply(lattice{}, theta)
}

// explanation explains the first table.
const explanation = `Small steps never leave a mode: the right proportions come from dispersed starts. Large steps cross between modes because their
discretization error heats the chains, which gives several times the variance within a mode. Cycles combine both if they cool down slowly; short
cycles leave chains where large steps threw them. Replicas at temperatures up to 32 cross in equilibrium. With this number of draws the total
variation is about 0.05 by chance.
`

func run(out io.Writer, dir string) error {
	table := report.NewTable("", report.Column{Title: "modes of 25", Format: "%.0f"}, report.Column{Title: "total variation", Format: "%.3f"},
		report.Column{Title: "chains that crossed, %", Format: "%.0f"}, report.Column{Title: "variance in a mode", Format: "%.3f"})
	var tracks []report.Track
	for _, m := range methods() {
		kept, err := m.sample()
		if err != nil {
			return err
		}
		found, variation := kept.census()
		if err := table.Add(m.name, float64(found), variation, 100*kept.crossed(), kept.spread()); err != nil {
			return err
		}
		if m.name == large || m.name == cyclical || m.name == replicas {
			x, y := kept.last(800)
			tracks = append(tracks, report.Track{Method: m.name, X: x, Y: y})
		}
	}
	if err := table.WriteText(out); err != nil {
		return err
	}
	fmt.Fprint(out, explanation, "\n")
	if table, err := gaussianTable(); err != nil {
		return err
	} else if err := table.WriteText(out); err != nil {
		return err
	}
	figure, err := report.Plane("x", "y", []report.Levels{density()}, tracks)
	if err != nil {
		return err
	}
	return figure.Save(filepath.Join(dir, "modes.png"))
}
