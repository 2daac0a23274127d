package bayes_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/langevin"
)

// A run is stopped and resumed, a second one samples further chains of the same posterior, as
// another machine could at the same time, and Gather makes one run of both.
func ExampleResume() {
	if err := resumeAndGather(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// stopped: true
	// stopped, some steps made: true
	// finished, 1000 of 1000 steps, 20 of 20 samples
	// together: finished, 2000 of 2000 steps, 40 of 40 samples
}

func resumeAndGather() error {
	pixels, labels := make([]byte, 100*8*8), make([]int32, 100)
	for i := range pixels {
		labels[i/64] = int32(i / 64 % 2)
		pixels[i] = byte(200*(i/64%2) + i*i%50)
	}
	shades, err := datasets.New("shades", pixels, labels, 1, 8, 8, []string{"dark", "bright"})
	if err != nil {
		return err
	}
	data := &datasets.Splits{Train: shades}
	dir, err := os.MkdirTemp("", "resume")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")

	ctx, stop := context.WithCancel(context.Background()) // signal.NotifyContext in a program
	defer stop()
	spec := bayes.Spec{Network: "mlp-16", Method: langevin.SGLD{}, Chains: 2, Epochs: 100, Samples: 10}
	_, err = bayes.Fit(ctx, spec, data, first, bayes.WithObserver(func(e bayes.Event) {
		if e.Task == "fit" && e.Done >= e.Total/2 {
			stop()
		}
	}))
	unfinished := new(bayes.UnfinishedError)
	if !errors.As(err, &unfinished) {
		return err
	}
	fmt.Println("stopped:", errors.Is(err, context.Canceled))
	run, err := bayes.Open(first)
	if err != nil {
		return err
	}
	progress, err := run.Progress()
	if err != nil {
		return err
	}
	fmt.Printf("%s, some steps made: %v\n", progress.State, progress.Made > 0 && progress.Made < progress.Steps)

	if run, err = bayes.Resume(context.Background(), first, data); err != nil {
		return err
	}
	if progress, err = run.Progress(); err != nil {
		return err
	}
	fmt.Println(progress)

	spec.FirstChain = 2 // after chains 0 and 1
	if _, err := bayes.Fit(context.Background(), spec, data, second); err != nil {
		return err
	}
	if run, err = bayes.Gather(filepath.Join(dir, "all"), []string{first, second}); err != nil {
		return err
	}
	if progress, err = run.Progress(); err != nil {
		return err
	}
	fmt.Println("together:", progress)
	return nil
}
