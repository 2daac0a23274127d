// Command mixture samples the posterior of the tied means of two Gaussians (Welling and Teh 2011,
// section 5.1), which has two modes.
//
// Five samplers with 4096 chains each find both modes in the right proportions: E[theta2] is within
// two standard errors of the exact 0.060, which comes from a grid. Single chains with the published
// step sizes do not: in minibatches of 100 all four stay in the mode where they start, with
// E[theta2] = 0.98. The table also has the fraction of chains that visited both modes, and the
// error that one chain of the sampler would make. mixture.png shows the last draws of the replica
// exchange, and one single chain. It takes about half a minute on two cores.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/config"
	"github.com/pollen-ml/pollen/report"
)

func main() {
	dir := flag.String("folder", ".", "directory for mixture.png")
	file := flag.String("data", "", "file of at least 10 points, one per line, after an optional heading (default: simulated points)")
	chains := flag.Int("chains", 4096, "number of chains of each sampler, even, at least 4")
	seed := flag.Uint64("seed", 1, "seed of the chains")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "mixture: takes flags only, got %q\n", flag.Arg(0))
		os.Exit(2)
	}
	if err := run(os.Stdout, *dir, *file, *seed, *chains); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(out io.Writer, dir, file string, seed uint64, chains int) error {
	if chains < 4 || chains%2 != 0 { // replica exchange has half of them at each of two temperatures
		return errors.Errorf("mixture: chains must be even and at least 4, got %d", chains)
	}
	path := filepath.Join(dir, "mixture.png")
	if err := config.CheckParent("folder", path); err != nil {
		return err
	}
	data := observations()
	if file != "" {
		var err error
		if data, err = readPoints(file); err != nil {
			return err
		}
	}
	truth, levels := exact(data)
	table := report.NewTable("", report.Column{Title: "E[theta1]", Format: "%.3f"}, report.Column{Title: "E[theta2]", Format: "%.3f"},
		report.Column{Title: "its standard error", Format: "%.3f"},
		report.Column{Title: "P(theta2>0)", Format: "%.3f"}, report.Column{Title: "chains in both modes, %", Format: "%.0f"},
		report.Column{Title: "error of one chain's E[theta2]", Format: "%.2f"})
	if err := table.Add("exact", truth.mean1, truth.mean2, "-", truth.positive, "-", "-"); err != nil {
		return err
	}
	tracks := map[string]states{}
	for _, method := range append(manyChains(data, seed, chains), oneChain(data, seed)...) {
		kept, err := method.draw()
		if err != nil {
			return err
		}
		tracks[method.name] = kept
		got, off, typical := kept.summary(truth)
		if err := table.Add(method.name, got.mean1, got.mean2, off.mean2, got.positive, 100*kept.crossed(), typical); err != nil {
			return err
		}
	}
	if err := table.WriteText(out); err != nil {
		return err
	}
	x, y, err := descent(data)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "SGD from (1, 1), with the learning rate 0.01, is at (%.4f, %.4f) after 300 epochs: in one mode, as a point.\n", x, y)
	fmt.Fprint(out, explanation)
	return draw(path, levels, tracks)
}

// explanation explains the table.
const explanation = `Standard errors come from the differences between chains. The many chains move in theta1 + theta2/2 and theta2, which are nearly
independent: their steps are long enough to cross between the modes, and all samplers give the modes the right proportions. The single chains, four of
each, move in theta1 and theta2 with the published step sizes. They are wrong because the step sizes shrink before a chain has crossed often enough, and
their standard errors do not show it because all four start at the same point. With minibatches of one point the gradient noise, at first several
times the injected noise, helps them across.
`

// draw saves a figure of the last states of many chains, and of all states of one.
func draw(path string, levels report.Levels, tracks map[string]states) error {
	x, y := tracks[replicaExchange].last()
	one := tracks[fmt.Sprintf(singleChain, 10)].chain(0)
	figure, err := report.Plane("theta1", "theta2", []report.Levels{levels}, []report.Track{
		{Method: replicaExchange, X: x, Y: y}, {Method: fmt.Sprintf(singleChain, 10), X: one.theta1, Y: one.theta2},
	})
	if err != nil {
		return err
	}
	return figure.Save(path)
}
