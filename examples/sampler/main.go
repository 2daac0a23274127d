// Command sampler trains digits by a custom sampler, the method of Leimkuhler and Matthews. It is
// the skeleton to copy for a sampler of your own:
//
//   - leimkuhler.go has the rule: its attributes, the op that makes a step, the host's loop;
//   - leimkuhler.cu has the same step for a GPU, and leimkuhler.ptx is what clang makes of it
//     (go generate); a sampler for the CPU only needs neither;
//   - sampler_test.go compares a step with the formula, the GPU with the host, and the chain's
//     variance with theory. A sampler whose noise is off by a factor runs and learns: only such
//     tests find it;
//   - variance.go draws the chain's variance on a Gaussian, by step size, in variance.png;
//   - this file registers the sampler and runs it like any other.
//
// A sampler of package langevin has the same parts; CONTRIBUTING.md lists the files.
//
//	go run ./examples/sampler                    on the CPU
//	go run ./examples/sampler -device cuda       on the first GPU, by leimkuhler.ptx
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/devices"
	"github.com/pollen-ml/pollen/optimizers"
)

func main() {
	device := flag.String("device", "cpu", "cpu, cuda, cuda:1 ...")
	epochs := flag.Int("epochs", 4, "passes over the digits")
	dir := flag.String("folder", ".", "directory for variance.png")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "sampler: takes flags only, got %q\n", flag.Arg(0))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := drawVariances(filepath.Join(*dir, "variance.png"))
	var digits *datasets.Splits
	if err == nil {
		digits, err = datasets.Open("mnist", datasets.Options{})
	}
	if err == nil {
		err = run(ctx, os.Stdout, *device, *epochs, digits)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, name string, epochs int, digits *datasets.Splits) error {
	if epochs < 1 {
		return fmt.Errorf("sampler: epochs must be at least 1, got %d", epochs)
	}
	// A run's directory keeps the method as text, "leimkuhler:carry=0.5". A program that opens the
	// run later must have registered the name, too. The attributes and the schedule are defaults.
	if err := bayes.Register("leimkuhler", LeimkuhlerMatthews{Carry: 0.5}, optimizers.Constant{Rate: 0.2}); err != nil {
		return err
	}
	method, err := bayes.ParseMethod("leimkuhler") // or LeimkuhlerMatthews{Carry: 0.4}
	if err != nil {
		return err
	}
	device, _, err := devices.Open(devices.Options{Name: name})
	if err != nil {
		return err
	}
	defer device.Close()
	dir, err := os.MkdirTemp("", "sampler")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	spec := bayes.Spec{Method: method, Epochs: epochs}
	trained, err := bayes.Fit(ctx, spec, digits, filepath.Join(dir, "run"), bayes.WithDevice(device))
	if err != nil {
		return err
	}
	scores, err := trained.Assess(ctx, digits.Test, nil)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, scores)
	return err
}
