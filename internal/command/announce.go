package command

import (
	"fmt"
	"os"
	"slices"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/internal/config"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/tensor"
)

// printSummary prints the data and the network that are about to be trained.
func printSummary(spec bayes.Spec, splits *datasets.Splits, c *console) error {
	data := splits.Train
	network, err := spec.Build(data.Classes)
	if err != nil {
		return err
	}
	summary, err := layers.Summarize(network, tensor.Shape{data.Channels, data.Height, data.Width})
	if err != nil {
		return config.AsUsageError(err)
	}
	summary = withoutFrozen(summary, spec)
	first, used := "", *splits
	if spec.Subset > 0 && spec.Subset < data.Len() {
		first = fmt.Sprintf(", %d of them", spec.Subset)
		if used.Train, err = data.First(spec.Subset); err != nil {
			return err
		}
	}
	c.remark("%s, %s of %dx%dx%d in %s%s", data.Name, counted(data.Len(), "image"), data.Channels, data.Height, data.Width,
		counted(data.Classes, "class"), first)
	if err := printClasses(&used, c); err != nil {
		return err
	}
	c.remark("held out: %s for scores, %s for calibration\n%v", imagesOf(splits.Test), imagesOf(splits.Validation), summary)
	last := summary.Rows[len(summary.Rows)-1]
	if slices.Contains([]string{"relu", "sigmoid", "softplus", "softsign", "tanh"}, last.Kind) {
		c.remark("the last layer, %s, limits logits to the range of %s: networks usually end in a linear layer", last.Name, last.Kind)
	}
	return nil
}

// withoutFrozen returns a summary with one row for the frozen network of an ONNX file.
func withoutFrozen(s layers.Summary, spec bayes.Spec) layers.Summary {
	head := slices.IndexFunc(s.Rows, func(r layers.Row) bool { return r.Parameters > 0 })
	if !spec.Frozen() || head < 1 {
		return s
	}
	frozen := layers.Row{Name: spec.NetworkName(), Kind: "frozen", Output: s.Rows[head-1].Output}
	for _, row := range s.Rows[:head] {
		frozen.Flops += row.Flops
	}
	s.Rows = append([]layers.Row{frozen}, s.Rows[head:]...)
	return s
}

// remarkCalibration warns, before a run begins, that it will have no guarantees or not all of them.
func remarkCalibration(splits *datasets.Splits, dir string, c *console) {
	needed := evaluate.NeededExamples(evaluate.Level)
	switch held := splits.Validation; {
	case held == nil:
		c.remark("no images are held out for calibration: the run will have no prediction sets, in-distribution decisions and certified risk. "+
			"--validation 0.1 holds out a tenth of the training images; images that it has not seen calibrate it later: %s calibrate %s --data DIR",
			program(os.Executable()), dir)
	case held.Len() < needed:
		c.remark("%s held out for calibration: prediction sets and in-distribution decisions at level %g need at least %d; hold out more with --validation, "+
			"or calibrate later: %s calibrate %s --data DIR", counted(held.Len(), "image"), evaluate.Level, needed, program(os.Executable()), dir)
	}
}

// imagesOf returns the number of images of a split as text, and of their groups, which certified
// risks and thresholds of classes count.
func imagesOf(split *datasets.Dataset) string {
	if split == nil {
		return "none"
	}
	text := counted(split.Len(), "image")
	if split.Groups != nil {
		groups := slices.Clone(split.Groups)
		slices.Sort(groups)
		text += " of " + counted(len(slices.Compact(groups)), "group")
	}
	return text
}
