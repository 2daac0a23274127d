// Command gorgonia runs the network of Gorgonia's own example, examples/convnet, three ways: on
// Gorgonia's TapeMachine; on Pollen's stock.Machine, by changing one line; and as a Bayesian
// network, whose weights are sampled by SGHMC.
//
// It prints the milliseconds of a training step and the costs of the first and last of four steps
// on both machines, then the scores of the Bayesian network on test digits. Pollen's steps take
// less than a tenth of Gorgonia's. The costs differ a little since the two draw different dropout
// masks; without dropout they are equal, which a test checks. It draws the time that steps take in
// time.png. All takes about half a minute, most of it on the TapeMachine.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	G "gorgonia.org/gorgonia"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/graph/stock"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/report"
)

func main() {
	dir := flag.String("folder", ".", "directory for time.png")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "gorgonia: takes flags only, got %q\n", flag.Arg(0))
		os.Exit(2)
	}
	size := sizes{batch: 100, hidden: 625, filters: [3]int{32, 64, 128}, dropout: [4]float64{0.2, 0.2, 0.2, 0.55}}
	if err := run(context.Background(), os.Stdout, *dir, size, 4, 2000); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, dir string, s sizes, steps, examples int) error {
	data, err := datasets.Open("mnist", datasets.Options{})
	if err != nil {
		return err
	}
	if err := bothMachines(out, filepath.Join(dir, "time.png"), s, data.Train, steps); err != nil {
		return err
	}
	return bayesian(ctx, out, s, data, examples)
}

// bothMachines trains the unchanged example on both machines, from the same weights, and draws how
// long steps take.
func bothMachines(out io.Writer, path string, s sizes, data *datasets.Dataset, steps int) error {
	m := newConvNet(s)
	if _, err := G.Grad(m.cost, m.learnables()...); err != nil {
		return err
	}
	weights, err := m.values()
	if err != nil {
		return err
	}
	var curves []report.Curve
	for _, way := range []struct {
		name string
		open func() G.VM
	}{
		{"Gorgonia", func() G.VM { return G.NewTapeMachine(m.g, G.BindDualValues(m.learnables()...)) }},
		{"Pollen", func() G.VM { return stock.NewMachine(m.g, stock.Options{}, G.BindDualValues(m.learnables()...)) }},
	} {
		for i, w := range m.learnables() {
			value, err := G.CloneValue(weights[i])
			if err != nil {
				return err
			}
			if err := G.Let(w, value); err != nil {
				return err
			}
		}
		vm := way.open()
		costs, seconds, err := m.train(vm, s, data, steps)
		if err = cmp.Or(err, vm.Close()); err != nil {
			return err
		}
		fmt.Fprintf(out, "%-9s %8.1f ms a step, cost %.4f ... %.4f\n", way.name, 1e3*seconds, costs[0], costs[len(costs)-1])
		c := report.Curve{Method: way.name}
		for i := range costs {
			c.X, c.Y = append(c.X, float64(i+1)), append(c.Y, float64(i+1)*seconds)
		}
		curves = append(curves, c)
	}
	figure, err := report.Curves(report.Axes{X: "steps", Y: "seconds", LogY: true}, curves)
	if err != nil {
		return err
	}
	return figure.Save(path)
}

// bayesian samples the weights of the same network without dropout, and scores its averaged
// predictions. The posterior takes the place of dropout as a regulariser.
func bayesian(ctx context.Context, out io.Writer, s sizes, data *datasets.Splits, examples int) error {
	dir, err := os.MkdirTemp("", "gorgonia")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s.dropout = [4]float64{}
	m := newConvNet(s)
	network, err := stock.NewNetwork(m.x, m.logits, m.learnables()...)
	if err != nil {
		return err
	}
	if err := bayes.RegisterNetwork("convnet", layers.Sequential{network}); err != nil {
		return err
	}
	spec := bayes.Spec{Network: "convnet", Method: langevin.SGHMC{Friction: 0.1}, Subset: examples, Epochs: 5, Samples: 5}
	run, err := bayes.Fit(ctx, spec, &datasets.Splits{Train: data.Train}, filepath.Join(dir, "run"))
	if err != nil {
		return err
	}
	test, err := data.Test.Slice(0, min(data.Test.Len(), examples))
	if err != nil {
		return err
	}
	scores, err := run.Assess(ctx, test, nil)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Bayesian  %s\n", scores)
	return nil
}
