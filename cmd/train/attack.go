package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pollen-ml/pollen"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/report"
)

func attackCommand(c *console) *cobra.Command {
	var s scoring
	var sizes []float64
	var images int
	command := &cobra.Command{
		Use: "attack RUN...", Short: "measure how well runs withstand adversarial examples, and whether they notice them",
		Long: "Moves each pixel of the test images by a step in the direction that makes the label less probable (the fast gradient sign\n" +
			"method), by the gradient of each run's own average over its samples, and scores the run on what comes out. Sizes are\n" +
			"shares of the pixels' range.",
		Example: "  train attack runs/main-1/sgd runs/main-1/sgld\n  train attack runs/fit-1 --sizes 0.1,0.25 --images 10000",
		Args:    wantRuns,
		RunE: func(command *cobra.Command, runs []string) error {
			return s.attack(command.Context(), runs, sizes, images, c)
		},
	}
	command.Flags().Float64SliceVar(&sizes, "sizes", []float64{0.05, 0.1, 0.15, 0.2, 0.25, 0.3}, "sizes of the step")
	command.Flags().IntVar(&images, "images", 1000, "how many of the test images, 0 for all")
	s.bind(command)
	return command
}

// attack scores runs on images moved against them.
func (s *scoring) attack(ctx context.Context, folders []string, sizes []float64, images int, c *console) error {
	for _, size := range sizes {
		if !(size >= 0 && size <= 1) {
			return usage("train: sizes: %v, wants shares of the pixels' range, 0 to 1", size)
		}
	}
	o, err := s.open(ctx, folders, c)
	if err != nil {
		return err
	}
	defer o.device.Close()
	defer c.endProgress()
	data := o.in
	if images < 0 || images > data.Len() {
		return usage("train: images: %d, wants 1 to %d, or 0 for all", images, data.Len())
	}
	if images > 0 {
		if data, err = data.Slice(0, images); err != nil {
			return err
		}
	}
	tables := newAttackTables(sizes)
	for _, r := range o.runs {
		if err := attack(ctx, r.run, r.name, data, sizes, tables); err != nil {
			return err
		}
	}
	c.endProgress()
	return tables.write(data.Len(), c)
}

// attack adds a run's rows.
func attack(ctx context.Context, run *pollen.Run, name string, data *datasets.Dataset, sizes []float64, to *attackTables) error {
	gradient, err := run.Gradient(ctx, data)
	if err != nil {
		return err
	}
	clean, err := run.Assess(ctx, data, nil)
	if err != nil {
		return err
	}
	accuracy, confidence, noticed := []any{clean.Values["accuracy"]}, []any{clean.Values["confidence"]}, []any{}
	for _, size := range sizes {
		moved := *data
		if moved.Images, err = evaluate.FGSM(data.Images, gradient, size); err != nil {
			return err
		}
		attacked, err := run.Assess(ctx, &moved, nil)
		if err != nil {
			return err
		}
		detection, err := evaluate.Detect(clean.In.Entropy, attacked.In.Entropy)
		if err != nil {
			return err
		}
		accuracy, confidence = append(accuracy, attacked.Values["accuracy"]), append(confidence, attacked.Values["confidence"])
		noticed = append(noticed, detection.AUROC)
	}
	if err := to.accuracy.Add(name, accuracy...); err != nil {
		return err
	}
	if err := to.confidence.Add(name, confidence...); err != nil {
		return err
	}
	return to.noticed.Add(name, noticed...)
}

// attackTables have a row for each run and a column for each size.
type attackTables struct{ accuracy, confidence, noticed *report.Table }

func newAttackTables(sizes []float64) *attackTables {
	var moved []report.Column
	for _, size := range sizes {
		moved = append(moved, report.Column{Title: fmt.Sprint(size), Format: "%.3f"})
	}
	all := append([]report.Column{{Title: "clean", Format: "%.3f"}}, moved...)
	return &attackTables{
		report.NewTable("accuracy", all...), report.NewTable("confidence", all...), report.NewTable("AUROC against clean", moved...),
	}
}

func (t *attackTables) write(images int, c *console) error {
	fmt.Fprintf(c.out, "%s, moved by the sign of the gradient; columns are sizes of the step. AUROC is by the entropy of the averaged\n"+
		"probabilities, with the moved images as the positive class.\n", counted(images, "test image"))
	fmt.Fprintln(c.out)
	return printTables(c, t.accuracy, t.confidence, t.noticed)
}
