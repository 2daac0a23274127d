package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"sort"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/report"
)

// contestant makes training steps of one network on fixed data.
type contestant interface {
	step() error
	close() error
}

// batch is the minibatch of all benchmarks here.
const batch = 100

// networks are timed with that many steps of each side in a round, so that a round takes about as long for each.
var networks = []struct {
	name           string
	pollen, others int
}{
	{"lenet-small", 20, 4},
	{"mnist-64-64-256", 3, 1},
}

func main() {
	rounds := flag.Int("rounds", 5, "rounds, in each of which both sides run")
	flag.Parse()
	if err := run(*rounds); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(rounds int) error {
	if rounds < 1 {
		return errors.Errorf("benchmarks: %d rounds, wants at least 1", rounds)
	}
	fmt.Printf("training step, SGD, batch %d, float32, %d threads, %s\n", batch, runtime.GOMAXPROCS(0), runtime.Version())
	table := report.NewTable("network", report.Column{Title: "Pollen ms/step", Format: "%.2f"}, report.Column{Title: "images/s", Format: "%.0f"},
		report.Column{Title: "SGLD ms/step", Format: "%.2f"}, report.Column{Title: "Gorgonia ms/step", Format: "%.1f"},
		report.Column{Title: "images/s", Format: "%.0f"}, report.Column{Title: "Gorgonia/Pollen", Format: "%.1f"})
	for _, n := range networks {
		row, err := compare(n.name, rounds, n.pollen, n.others)
		if err != nil {
			return err
		}
		if err := table.Add(n.name, row...); err != nil {
			return err
		}
	}
	return table.WriteText(os.Stdout)
}

// compare times both sides in turn and returns a row of the table.
func compare(network string, rounds, pollenSteps, otherSteps int) ([]any, error) {
	sgd, err := newPollen(network, false)
	if err != nil {
		return nil, err
	}
	defer sgd.close()
	sgld, err := newPollen(network, true)
	if err != nil {
		return nil, err
	}
	defer sgld.close()
	other, err := newTape(network)
	if err != nil {
		return nil, err
	}
	defer other.close()
	sides := []struct {
		contestant
		steps int
		times []float64
	}{{sgd, pollenSteps, nil}, {sgld, pollenSteps, nil}, {other, otherSteps, nil}}
	for round := range rounds + 1 {
		for i := range sides {
			side := &sides[i]
			for range side.steps {
				start := time.Now()
				if err := side.step(); err != nil {
					return nil, err
				}
				if round > 0 { // the first round warms up
					side.times = append(side.times, time.Since(start).Seconds())
				}
			}
		}
	}
	fast, noisy, slow := median(sides[0].times), median(sides[1].times), median(sides[2].times)
	return []any{1000 * fast, batch / fast, 1000 * noisy, 1000 * slow, batch / slow, slow / fast}, nil
}

func median(times []float64) float64 {
	sort.Float64s(times)
	return times[len(times)/2]
}
