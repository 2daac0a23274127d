package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/internal/comparison"
)

// perturbFlags is the common part of attack and corrupt: runs are scored on clean test images and
// on perturbed ones, with a column for each strength.
type perturbFlags struct {
	scoreFlags
	images  int
	columns []string
	// perturb returns the perturbed versions of a run's test images for a column, whose scores are
	// averaged.
	perturb func(ctx context.Context, run *bayes.Run, data *datasets.Dataset) (func(column int) ([]*datasets.Dataset, error), error)
}

func attackCommand(c *console) *cobra.Command {
	var a perturbFlags
	var sizes []float64
	a.perturb = func(ctx context.Context, run *bayes.Run, data *datasets.Dataset) (func(int) ([]*datasets.Dataset, error), error) {
		gradient, err := run.Gradient(ctx, data)
		return func(column int) ([]*datasets.Dataset, error) {
			moved := *data
			var err error
			moved.Images, err = evaluate.FGSM(data.Images, gradient, sizes[column])
			return []*datasets.Dataset{&moved}, err
		}, err
	}
	command := &cobra.Command{
		Use: "attack RUN...", Short: "Score runs on adversarial examples (FGSM)",
		Long: "Scores each run on adversarial examples of the fast gradient sign method: each pixel of a test image moves by one step in\n" +
			"the direction that makes the label less probable, by the gradient of the run's own posterior predictive. AUROC measures\n" +
			"how well the entropy detects the perturbed images.",
		Example: "  pollen attack runs/main-1/sgd runs/main-1/sgld\n  pollen attack runs/fit-1 --sizes 0.1,0.25 --images 10000",
		Args:    requireRuns,
		RunE: func(command *cobra.Command, runs []string) error {
			for i, size := range sizes {
				if !(size >= 0 && size <= 1) {
					return usage("pollen: --sizes must be fractions of the pixels' range, 0 to 1, got %v", size)
				}
				if slices.Contains(sizes[:i], size) {
					return usage("pollen: --sizes has %v twice", size)
				}
				a.columns = append(a.columns, fmt.Sprint(size))
			}
			return a.run(command.Context(), runs, "perturbed by FGSM; columns are step sizes", c)
		},
	}
	command.Flags().Float64SliceVar(&sizes, "sizes", []float64{0.05, 0.1, 0.15, 0.2, 0.25, 0.3}, "step sizes, as `fractions` of the pixels' range")
	command.Flags().Lookup("sizes").DefValue = "0.05,0.1,0.15,0.2,0.25,0.3"
	a.bind(command)
	return command
}

func corruptCommand(c *console) *cobra.Command {
	s := perturbFlags{columns: []string{"1", "2", "3", "4", "5"}}
	var kinds []string
	s.perturb = func(_ context.Context, _ *bayes.Run, data *datasets.Dataset) (func(int) ([]*datasets.Dataset, error), error) {
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
		Use: "corrupt RUN...", Short: "Score runs on corrupted test images: noise, blur, ...",
		Long: "Scores runs on test images with the corruptions of CIFAR-10-C (Hendrycks and Dietterich 2019), at severities 1 to 5,\n" +
			"averaged over the kinds of corruption. AUROC measures how well the entropy detects the corrupted images.",
		Example: "  pollen corrupt runs/main-1/sgd runs/main-1/sgld\n  pollen corrupt runs/fit-1 --kinds gaussian-blur,jpeg --images 0",
		Args:    requireRuns,
		RunE: func(command *cobra.Command, runs []string) error {
			known := datasets.Corruptions()
			if len(kinds) == 0 || slices.ContainsFunc(kinds, func(kind string) bool { return !slices.Contains(known, kind) }) {
				return usage("pollen: --kinds must be some of %[2]s, got %[1]q", kinds, strings.Join(known, ","))
			}
			for i, kind := range kinds {
				if slices.Contains(kinds[:i], kind) {
					return usage("pollen: --kinds has %s twice", kind)
				}
			}
			return s.run(command.Context(), runs, fmt.Sprintf("corrupted in %s; columns are severities", counted(len(kinds), "way")), c)
		},
	}
	command.Flags().StringSliceVar(&kinds, "kinds", datasets.Corruptions(), "kinds of corruption")
	s.bind(command)
	return command
}

func (s *perturbFlags) bind(command *cobra.Command) {
	command.Flags().IntVar(&s.images, "images", 1000, "maximum number of test images, 0 for all")
	s.scoreFlags.bind(command)
}

// run scores runs on clean and perturbed images and prints the tables.
func (s *perturbFlags) run(ctx context.Context, dirs []string, how string, c *console) error {
	if s.images < 0 {
		return usage("pollen: --images must not be negative, got %d", s.images)
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
	fmt.Fprintf(c.out, "%s, %s.\nAUROC is by the entropy of the averaged probabilities, with perturbed images as the positive class.\n\n",
		counted(data.Len(), "test image"), how)
	return printTables(c, changed.Tables()...)
}
