package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pollen-ml/pollen"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/internal/comparison"
)

// changing is what attack and shift have in common: runs are scored on test images as they are, and
// on changed ones, in columns that average over some changes.
type perturbFlags struct {
	scoreFlags
	images  int
	columns []string
	// changes makes what a column's changes leave of the images that a run is scored on.
	perturb func(ctx context.Context, run *pollen.Run, data *datasets.Dataset) (func(column int) ([]*datasets.Dataset, error), error)
}

func attackCommand(c *console) *cobra.Command {
	var a perturbFlags
	var sizes []float64
	a.perturb = func(ctx context.Context, run *pollen.Run, data *datasets.Dataset) (func(int) ([]*datasets.Dataset, error), error) {
		gradient, err := run.Gradient(ctx, data)
		return func(column int) ([]*datasets.Dataset, error) {
			moved := *data
			var err error
			moved.Images, err = evaluate.FGSM(data.Images, gradient, sizes[column])
			return []*datasets.Dataset{&moved}, err
		}, err
	}
	command := &cobra.Command{
		Use: "attack RUN...", Short: "measure how well runs withstand adversarial examples, and whether they notice them",
		Long: "Moves each pixel of the test images by a step in the direction that makes the label less probable (the fast gradient sign\n" +
			"method), by the gradient of each run's own average over its samples, and scores the run on what comes out. Sizes are\n" +
			"shares of the pixels' range.",
		Example: "  pollen attack runs/main-1/sgd runs/main-1/sgld\n  pollen attack runs/fit-1 --sizes 0.1,0.25 --images 10000",
		Args:    requireRuns,
		RunE: func(command *cobra.Command, runs []string) error {
			for _, size := range sizes {
				if !(size >= 0 && size <= 1) {
					return usage("pollen: sizes: %v, wants shares of the pixels' range, 0 to 1", size)
				}
				a.columns = append(a.columns, fmt.Sprint(size))
			}
			return a.run(command.Context(), runs, "moved by the sign of the gradient; columns are sizes of the step", c)
		},
	}
	command.Flags().Float64SliceVar(&sizes, "sizes", []float64{0.05, 0.1, 0.15, 0.2, 0.25, 0.3}, "sizes of the step")
	a.bind(command)
	return command
}

func corruptCommand(c *console) *cobra.Command {
	s := perturbFlags{columns: []string{"1", "2", "3", "4", "5"}}
	var kinds []string
	s.perturb = func(_ context.Context, _ *pollen.Run, data *datasets.Dataset) (func(int) ([]*datasets.Dataset, error), error) {
		return func(column int) (all []*datasets.Dataset, err error) {
			for _, kind := range kinds {
				corrupted, err := data.Corrupted(kind, column+1, 1)
				if err != nil {
					return nil, err
				}
				all = append(all, corrupted)
			}
			return all, nil
		}, nil
	}
	command := &cobra.Command{
		Use: "corrupt RUN...", Short: "measure how well runs withstand noise, blur and other changes of the test images, and whether they notice them",
		Long: "Scores runs on test images that are corrupted as those of CIFAR-10-C are (Hendrycks and Dietterich 2019), at severities\n" +
			"1 to 5: means over the kinds of corruption.",
		Example: "  pollen corrupt runs/main-1/sgd runs/main-1/sgld\n  pollen corrupt runs/fit-1 --kinds gaussian-blur,jpeg --images 0",
		Args:    requireRuns,
		RunE: func(command *cobra.Command, runs []string) error {
			known := datasets.Corruptions()
			if len(kinds) == 0 || slices.ContainsFunc(kinds, func(kind string) bool { return !slices.Contains(known, kind) }) {
				return usage("pollen: kinds: %q, wants some of %s", kinds, strings.Join(known, ","))
			}
			return s.run(command.Context(), runs, fmt.Sprintf("corrupted in %s; columns are severities", counted(len(kinds), "way")), c)
		},
	}
	command.Flags().StringSliceVar(&kinds, "kinds", datasets.Corruptions(), "kinds of corruption")
	s.bind(command)
	return command
}

func (s *perturbFlags) bind(command *cobra.Command) {
	command.Flags().IntVar(&s.images, "images", 1000, "score on at most that many of the test images, 0 for all")
	s.scoreFlags.bind(command)
}

// run scores runs on images as they are and on changed ones, and prints that.
func (s *perturbFlags) run(ctx context.Context, dirs []string, how string, c *console) error {
	if s.images < 0 {
		return usage("pollen: images: %d, wants at least 1, or 0 for all", s.images)
	}
	o, err := s.open(ctx, dirs, c)
	if err != nil {
		return err
	}
	defer o.device.Close()
	defer c.endProgress()
	data := o.in
	if s.images > 0 && s.images < data.Len() {
		if data, err = data.First(s.images); err != nil {
			return err
		}
	}
	changed := comparison.NewPerturbedScores(s.columns)
	for _, r := range o.runs {
		versions, err := s.perturb(ctx, r.run, data)
		if err == nil {
			err = changed.Add(ctx, r.name, r.run, data, versions)
		}
		if err != nil {
			return err
		}
	}
	c.endProgress()
	fmt.Fprintf(c.out, "%s, %s. AUROC is by the entropy of the averaged\n"+
		"probabilities, with the changed images as the positive class.\n\n", counted(data.Len(), "test image"), how)
	return printTables(c, changed.Tables()...)
}
