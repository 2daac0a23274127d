package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/report"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

func attackCommand(c *console) *cobra.Command {
	var s scoring
	var sizes []float64
	var images int
	command := &cobra.Command{
		Use: "attack RUN...", Short: "tell how well runs withstand adversarial examples, and whether they notice them",
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
	s.bindFlags(command)
	return command
}

// attack scores runs on images moved against them.
func (s *scoring) attack(ctx context.Context, runs []string, sizes []float64, images int, c *console) error {
	if len(sizes) == 0 {
		return usage("train: sizes: there are none")
	}
	for _, size := range sizes {
		if !(size >= 0 && size <= 1) {
			return usage("train: sizes: %v, wants shares of the pixels' range, 0 to 1", size)
		}
	}
	device, data, _, err := s.open(ctx, runs, "", c)
	if err != nil {
		return err
	}
	defer device.Close()
	if images < 0 || images > data.Len() {
		return usage("train: images: %d, wants 1 to %d, or 0 for all", images, data.Len())
	}
	if images > 0 {
		if data, err = data.Slice(0, images); err != nil {
			return err
		}
	}
	tables := newAttackTables(sizes)
	for _, name := range runs {
		run, err := openSampled(name, c)
		if err != nil {
			return err
		}
		if err := run.attack(ctx, name, data, sizes, tables, device, c); err != nil {
			return err
		}
	}
	return tables.write(data.Len(), c)
}

// attack adds a run's rows.
func (r *sampled) attack(ctx context.Context, name string, data *datasets.Dataset, sizes []float64, to *attackTables,
	device tensor.Device, c *console,
) error {
	gradient, err := r.gradient(ctx, data, device, c)
	if err != nil {
		return err
	}
	clean, err := r.predict(ctx, data, device, c)
	if err != nil {
		return err
	}
	scores, err := scoreOf(clean.probabilities, data.Labels, data.Classes)
	if err != nil {
		return err
	}
	accuracy, confidence, noticed := []any{scores.Accuracy}, []any{scores.MeanConfidence}, []any{}
	for _, size := range sizes {
		moved := *data
		if moved.Images, err = evaluate.FGSM(data.Images, gradient, size); err != nil {
			return err
		}
		attacked, err := r.predict(ctx, &moved, device, c)
		if err != nil {
			return err
		}
		if scores, err = scoreOf(attacked.probabilities, data.Labels, data.Classes); err != nil {
			return err
		}
		detection, err := evaluate.Detect(clean.uncertainty.Entropy, attacked.uncertainty.Entropy)
		if err != nil {
			return err
		}
		accuracy, confidence = append(accuracy, scores.Accuracy), append(confidence, scores.MeanConfidence)
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

// gradient is that of the run's average, by the pixels of a data set.
func (r *sampled) gradient(ctx context.Context, data *datasets.Dataset, device tensor.Device, c *console) ([]float64, error) {
	g, err := samples.NewInputGradient(device, tensor.Float32, r.images(data), data.Labels, predictBatch, r.network.Apply)
	if err != nil {
		return nil, err
	}
	defer g.Close()
	if err := r.each(ctx, "gradient", "on "+data.Name, c, g.Add); err != nil {
		return nil, err
	}
	return g.Gradient(), nil
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
	for _, table := range []*report.Table{t.accuracy, t.confidence, t.noticed} {
		fmt.Fprintln(c.out)
		if err := table.WriteText(c.out); err != nil {
			return err
		}
	}
	return nil
}
