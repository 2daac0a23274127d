package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/report"
	"github.com/pollen-ml/pollen/tensor"
)

func evalCommand(c *console) *cobra.Command {
	var s scoring
	command := &cobra.Command{
		Use: "eval RUN...", Short: "score the posterior averages of runs on test data",
		Long:    "Averages the probabilities of all samples of each run and scores them on the test images of a data set.",
		Example: "  train eval runs/main-1/sgd runs/main-1/sgld\n  train eval runs/fit-1 --data fashion-mnist",
		Args:    wantRuns,
		RunE:    func(command *cobra.Command, runs []string) error { return s.run(command.Context(), runs, "", c) },
	}
	s.bindFlags(command)
	return command
}

func oodCommand(c *console) *cobra.Command {
	var s scoring
	var other string
	command := &cobra.Command{
		Use: "ood RUN...", Short: "tell how well runs know data of another kind from their own",
		Long: "Scores each run as eval does, and tells how well the entropy of its averaged probabilities separates its own kind of\n" +
			"data from another kind, which it has not been trained on. Of runs that differ in nothing but their seed it also prints means\n" +
			"and standard errors.",
		Example: "  train ood runs/main-1/sgd runs/main-1/sgld\n  train ood runs/fit-1 --out notmnist",
		Args:    wantRuns,
		RunE:    func(command *cobra.Command, runs []string) error { return s.run(command.Context(), runs, other, c) },
	}
	command.Flags().StringVar(&other, "out", "glyphs", "data set of the other kind: "+strings.Join(datasets.Names(), ", "))
	s.bindFlags(command)
	return command
}

func wantRuns(command *cobra.Command, runs []string) error {
	if len(runs) == 0 {
		return usage("train: %s wants the folder of at least one run", command.Name())
	}
	return nil
}

// scoring are the flags of eval and ood.
type scoring struct {
	data, folder, device string
	threads              int
	precision            string
}

func (s *scoring) bindFlags(command *cobra.Command) {
	command.Flags().StringVar(&s.data, "data", "", "data set whose test images are predicted (default: the one trained on)")
	bindDataFolder(command.Flags(), &s.folder)
	bindDevice(command.Flags(), &s.device, &s.threads, &s.precision)
}

// run scores runs, and how they tell another data set from theirs if there is one.
func (s *scoring) run(ctx context.Context, runs []string, other string, c *console) error {
	device, in, out, err := s.open(ctx, runs, other, c)
	if err != nil {
		return err
	}
	defer device.Close()
	return printAssessments(ctx, runs, runs, in, out, device, c)
}

// open checks the flags, and makes ready what they name: the device, the runs' kind of data, the other kind if there is one.
func (s *scoring) open(ctx context.Context, runs []string, other string, c *console) (
	device tensor.Device, in, out *datasets.Dataset, err error,
) {
	if other != "" {
		if err := checkData("out", other, datasets.Names()); err != nil {
			return nil, nil, nil, err
		}
	}
	if s.data != "" {
		if err := checkData("data", s.data, datasets.Names()); err != nil {
			return nil, nil, nil, err
		}
	}
	if err := checkDevice(s.device, s.threads, s.precision); err != nil {
		return nil, nil, nil, err
	}
	if err := s.sameData(runs); err != nil {
		return nil, nil, nil, err
	}
	if other == s.data {
		return nil, nil, nil, usage("train: out: %s is the runs' own kind of data: name another", other)
	}
	if in, err = loadData(ctx, s.data, datasets.Test, s.folder, c); err != nil {
		return nil, nil, nil, err
	}
	if other != "" {
		if out, err = loadData(ctx, other, datasets.Test, s.folder, c); err != nil {
			return nil, nil, nil, err
		}
	}
	device, err = openDevice(s.device, s.threads, s.precision, c)
	return device, in, out, err
}

// sameData takes the runs' data set where none was given.
func (s *scoring) sameData(runs []string) error {
	given := s.data
	for _, run := range runs {
		manifest, err := readManifest(run)
		if err != nil {
			return err
		}
		if s.data == "" {
			s.data = manifest.Config.Data
		}
		if given == "" && manifest.Config.Data != s.data {
			return usage("train: %s was trained on %s, %s on %s: say which one by --data", runs[0], s.data, run, manifest.Config.Data)
		}
	}
	return nil
}

// printAssessments prints a row for each run.
func printAssessments(ctx context.Context, names, folders []string, in, out *datasets.Dataset, device tensor.Device, c *console) error {
	outName := ""
	if out != nil {
		outName = out.Name
	}
	table, detections := newScoreTable(in.Name, outName), newDetectionTable()
	var assessments []*assessment
	for i, folder := range folders {
		a, err := assess(ctx, folder, in, out, device, c)
		if err != nil {
			return err
		}
		assessments = append(assessments, a)
		if err := addScores(table, names[i], a); err != nil {
			return err
		}
		if err := addDetections(detections, names[i], a); err != nil {
			return err
		}
	}
	if err := table.WriteText(c.out); err != nil {
		return err
	}
	groups, err := bySeeds(names, folders, assessments)
	if err != nil {
		return err
	}
	overSeeds, err := seedsTable(groups, out != nil)
	if err != nil {
		return err
	}
	if overSeeds != nil {
		fmt.Fprintln(c.out)
		if err := overSeeds.WriteText(c.out); err != nil {
			return err
		}
	}
	if out == nil {
		return nil
	}
	fmt.Fprintf(c.out, "%s\n\n", detectionNote)
	return detections.WriteText(c.out)
}

func newDetectionTable() *report.Table {
	return report.NewTable("run, score", report.Column{Title: "AUROC", Format: "%.4f"}, report.Column{Title: "AUPR out", Format: "%.4f"},
		report.Column{Title: "AUPR in", Format: "%.4f"}, report.Column{Title: "FPR95", Format: "%.3f"})
}

// addDetections adds a row for each score by which another kind of data could be told.
func addDetections(table *report.Table, name string, a *assessment) error {
	if a.out == nil {
		return nil
	}
	in, out := a.in.uncertainty, a.out.uncertainty
	scores := []struct {
		name    string
		in, out []float64
	}{
		{"1 - confidence", negated(in.Confidence), negated(out.Confidence)},
		{"entropy", in.Entropy, out.Entropy},
		{"expected entropy", in.ExpectedEntropy, out.ExpectedEntropy},
		{"mutual information", in.MutualInformation, out.MutualInformation},
	}
	for _, score := range scores {
		d, err := evaluate.Detect(score.in, score.out)
		if err != nil {
			return err
		}
		if err := table.Add(name+", "+score.name, d.AUROC, d.AUPROut, d.AUPRIn, d.FPR95); err != nil {
			return err
		}
	}
	return nil
}

func negated(values []float64) []float64 {
	minus := make([]float64, len(values))
	for i, v := range values {
		minus[i] = -v
	}
	return minus
}

// detectionNote says what the columns of detection mean.
const detectionNote = "AUROC and FPR95: by the entropy of the averaged probabilities, with the other kind as the positive class."

func newScoreTable(in, out string) *report.Table {
	columns := []report.Column{
		{Title: "accuracy", Format: "%.4f"}, {Title: "NLL", Format: "%.4f"}, {Title: "Brier", Format: "%.4f"}, {Title: "ECE", Format: "%.4f"},
		{Title: "confidence on " + in, Format: "%.3f"},
	}
	if out != "" {
		columns = append(columns, report.Column{Title: "on " + out, Format: "%.3f"},
			report.Column{Title: "AUROC", Format: "%.4f"}, report.Column{Title: "FPR95", Format: "%.3f"})
	}
	return report.NewTable("run", columns...)
}

func addScores(table *report.Table, name string, a *assessment) error {
	cells := []any{a.scores.Accuracy, a.scores.NLL, a.scores.Brier, a.scores.ECE, a.scores.MeanConfidence}
	if a.out != nil {
		cells = append(cells, a.outMean, a.detection.AUROC, a.detection.FPR95)
	}
	return table.Add(name, cells...)
}
