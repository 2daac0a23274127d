// Command activation trains a network with a custom activation, Mish, on MNIST by SGLD. The op, its
// gradient and its CUDA kernels are in this directory, outside Pollen's packages:
//
//	mish.go       the op: shapes, the loop on the CPU, launches of GPU kernels, the gradient
//	mish.cu       the CUDA kernels; go generate compiles them to mish.ptx with clang
//	main_test.go  compares it with a naive loop, on the CPU and the emulated GPU
//
// It draws the activation and its slope in mish.png, and prints the scores on the test digits, with
// an accuracy of about 0.98, after some half a minute:
//
//	go run ./examples/activation                    on the CPU
//	go run ./examples/activation -device cuda       on the first GPU, by mish.ptx
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
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/report"
)

// network is lenet-small with Mish in place of ReLU.
var network = layers.Sequential{
	layers.Conv2D{Filters: 10, Kernel: 5}, Layer{}, layers.MaxPool{Window: 2},
	layers.Conv2D{Filters: 20, Kernel: 5}, Layer{}, layers.MaxPool{Window: 2},
	layers.Flatten{}, layers.Linear{Outputs: 50}, Layer{}, layers.Linear{Outputs: 10},
}

func main() {
	device := flag.String("device", "cpu", "cpu, cuda, cuda:1 ...")
	epochs := flag.Int("epochs", 4, "passes over the digits")
	dir := flag.String("folder", ".", "directory for mish.png")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "activation: takes flags only, got %q\n", flag.Arg(0))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := draw(filepath.Join(*dir, "mish.png"))
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
		return fmt.Errorf("activation: epochs must be at least 1, got %d", epochs)
	}
	// A run's manifest has the network's name. A program that opens the run later must register the
	// network by the same name.
	if err := bayes.RegisterNetwork("mish", network); err != nil {
		return err
	}
	device, _, err := devices.Open(devices.Options{Name: name})
	if err != nil {
		return err
	}
	defer device.Close()
	dir, err := os.MkdirTemp("", "activation")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	spec := bayes.Spec{Network: "mish", Method: langevin.SGLD{}, Epochs: epochs}
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

// draw draws Mish and its slope, next to the activation that it replaces.
func draw(path string) error {
	curves := []report.Curve{{Method: "Mish"}, {Method: "slope of Mish"}, {Method: "ReLU"}}
	for i := range 161 {
		x := float64(i-80) / 20
		for k, y := range []float64{mish(x), slope(x), max(x, 0)} {
			curves[k].X, curves[k].Y = append(curves[k].X, x), append(curves[k].Y, y)
		}
	}
	figure, err := report.Curves(report.Axes{X: "x", Y: "y"}, curves)
	if err != nil {
		return err
	}
	return figure.Save(path)
}
