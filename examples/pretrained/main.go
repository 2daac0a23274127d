// Command pretrained compares two heads on the same pretrained network: one that Adam trains, and
// the posterior average over heads that NUTS samples.
//
//	go run ./examples/pretrained -data antsbees -model lite0.onnx -input inception -out signs
//
// -data has a directory for each class, as for pollen fit, and -out has images that belong to
// none of them. The program prints how well both heads predict, and how well their entropy
// distinguishes the other images from test images. pretrained.png shows the fraction of both
// kinds of images for which a head has at least a given confidence: the more confident a head is
// about the other images, the less its confidence means.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/report"
)

// settings are the flags.
type settings struct {
	data, out, model, input, dir string
	epochs                       int // of both heads; 0 is the methods' own
}

func main() {
	var s settings
	flag.StringVar(&s.data, "data", "", "directory of images, with a directory for each class")
	flag.StringVar(&s.out, "out", "", "directory of images that belong to none of the classes")
	flag.StringVar(&s.model, "model", "", "ONNX file of the pretrained network")
	flag.StringVar(&s.input, "input", "imagenet", "how images become its input, as for pollen fit")
	flag.StringVar(&s.dir, "folder", ".", "directory for the runs and pretrained.png")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "pretrained: takes flags only, got %q\n", flag.Arg(0))
		os.Exit(2)
	}
	if err := run(context.Background(), os.Stdout, s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// heads are the methods, as pollen fit --method names them.
var heads = []struct {
	name, method string
	chains       int
}{{"Adam", "adam", 1}, {"NUTS", "nuts", 4}}

// images reads the data and the other images in the shape of the network's input.
func images(spec bayes.Spec, s settings) (*datasets.Splits, *datasets.Dataset, error) {
	channels, height, width, err := spec.ImageShape()
	if err != nil {
		return nil, nil, err
	}
	options := datasets.Options{Channels: cmp.Or(channels, 3), Height: cmp.Or(height, 224), Width: cmp.Or(width, 224), Crop: true, Seed: 1, Validation: -1}
	data, err := datasets.Open(s.data, options)
	if err != nil {
		return nil, nil, err
	}
	if data.Test == nil {
		return nil, nil, errors.Errorf("pretrained: -data %s has no test images", s.data)
	}
	other, err := datasets.ReadImages([]string{s.out}, options)
	return data, other, err
}

// run fits the heads, prints their scores and saves the figure.
func run(ctx context.Context, out io.Writer, s settings) error {
	if s.data == "" || s.out == "" || s.model == "" {
		return errors.New("pretrained: -data, -out and -model are needed")
	}
	spec := bayes.Spec{Network: s.model, Input: s.input, Epochs: s.epochs, Seed: 1}
	data, other, err := images(spec, s)
	if err != nil {
		return err
	}
	table := report.NewTable("head", report.Column{Title: "accuracy", Format: "%.4f"}, report.Column{Title: "NLL", Format: "%.4f"},
		report.Column{Title: "ECE", Format: "%.4f"}, report.Column{Title: "AUROC of entropy", Format: "%.4f"})
	var curves []report.Curve
	for _, head := range heads {
		spec := spec
		spec.Chains = head.chains
		if spec.Method, err = bayes.ParseMethod(head.method); err != nil {
			return err
		}
		// The second head takes the features that the first one computed.
		fitted, err := bayes.Fit(ctx, spec, data, filepath.Join(s.dir, head.method), bayes.WithFeatureCache(filepath.Join(s.dir, "features")))
		if err != nil {
			return err
		}
		scores, err := fitted.Assess(ctx, data.Test, other)
		if err != nil {
			return err
		}
		v := scores.Values
		if err := table.Add(head.name, v["accuracy"], v["nll"], v["ece"], scores.Detections["entropy"].AUROC); err != nil {
			return err
		}
		curves = append(curves, confident(head.name+", test images", scores.In), confident(head.name+", other images", scores.Out))
	}
	if err := table.WriteText(out); err != nil {
		return err
	}
	figure, err := report.Curves(report.Axes{X: "confidence", Y: "fraction of images with at least this confidence"}, curves)
	if err != nil {
		return err
	}
	return figure.Save(filepath.Join(s.dir, "pretrained.png"))
}

// confident returns the fraction of images with at least a given confidence.
func confident(name string, p *evaluate.Predictions) (c report.Curve) {
	const steps = 200
	c.Method = name
	least := 1 / float64(p.Classes)
	for i := range steps + 1 {
		at, count := least+(1-least)*float64(i)/steps, 0
		for _, v := range p.Confidence {
			if v >= at {
				count++
			}
		}
		c.X, c.Y = append(c.X, at), append(c.Y, float64(count)/float64(len(p.Confidence)))
	}
	return c
}
