// Command paths draws how seven optimizers descend an ill-conditioned ravine and Rosenbrock's
// curved valley.
//
// For each optimizer it prints where it ends and how many steps it needs to f < 0.01. In the ravine
// momentum and Nesterov's method need about a third of SGD's steps; in Rosenbrock's valley SGD
// needs some 4000, Adam 1500, momentum 700. Adadelta, which has no learning rate, arrives in
// neither. ravine.png and rosenbrock.png have the paths. It takes a second.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/report"
	"github.com/pollen-ml/pollen/tensor"
)

func main() {
	dir := flag.String("folder", ".", "directory for ravine.png and rosenbrock.png")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "paths: takes flags only, got %q\n", flag.Arg(0))
		os.Exit(2)
	}
	if err := run(os.Stdout, *dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(out io.Writer, dir string) error {
	for _, l := range landscapes() {
		table := report.NewTable(l.name, report.Column{Title: "x", Format: "%.4f"}, report.Column{Title: "y", Format: "%.4f"},
			report.Column{Title: "f", Format: "%.2g"}, report.Column{Title: "steps to f < 0.01", Format: "%.0f"})
		if err := table.Add("exact minimum", l.minimum[0], l.minimum[1], 0.0, "-"); err != nil {
			return err
		}
		var tracks []report.Track
		for _, r := range l.rules {
			track, err := l.descend(r)
			if err != nil {
				return err
			}
			tracks = append(tracks, track)
			reached := "-"
			for step := range track.X {
				if l.value(track.X[step], track.Y[step]) < 0.01 {
					reached = fmt.Sprint(step)
					break
				}
			}
			x, y := track.X[l.steps], track.Y[l.steps]
			if err := table.Add(track.Method, x, y, l.value(x, y), reached); err != nil {
				return err
			}
		}
		if err := table.WriteText(out); err != nil {
			return err
		}
		fmt.Fprintln(out)
		figure, err := report.Plane("x", "y", []report.Levels{l.grid()}, tracks)
		if err != nil {
			return err
		}
		if err := figure.Save(filepath.Join(dir, l.name+".png")); err != nil {
			return err
		}
	}
	return nil
}

// descend returns the path of an optimizer, including the start.
func (l landscape) descend(r rule) (report.Track, error) {
	b := graph.New(tensor.Float64)
	at := func(i int) graph.Initializer {
		return func(_ uint64, _ uint32, _ uint16, _ tensor.Shape, values []float64) { values[0] = l.start[i] }
	}
	x, y := b.Parameter("x", at(0), 1), b.Parameter("y", at(1), 1)
	parameters := []*graph.Node{x, y}
	gradients := b.Gradients(b.Apply(op.Sum{}, l.node(b, x, y)), parameters...)
	var rates *graph.Node
	if optimizers.UsesRates(r.optimizer) {
		rates = b.Table("rates", []float64{r.rate})
	}
	optimizers.Update(b, r.optimizer, parameters, gradients, rates)
	program, err := b.Compile()
	if err != nil {
		return report.Track{}, err
	}
	host := tensor.NewHost(1)
	defer host.Close()
	session, err := program.Load(host, graph.LoadOptions{})
	if err != nil {
		return report.Track{}, err
	}
	defer session.Close()
	track := report.Track{Method: r.optimizer.Name(), X: l.start[:1:1], Y: l.start[1:2:2], Joined: true}
	for range l.steps {
		if err := session.Run(1); err != nil {
			return track, err
		}
		var place [2][1]float64
		for i, name := range []string{"x", "y"} {
			if err := graph.Read(session, name, 0, 0, place[i][:]); err != nil {
				return track, err
			}
		}
		track.X, track.Y = append(track.X, place[0][0]), append(track.Y, place[1][0])
	}
	return track, nil
}
