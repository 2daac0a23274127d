package command

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"

	"github.com/pollen-ml/pollen"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/config"
	"github.com/pollen-ml/pollen/internal/npz"
	"github.com/pollen-ml/pollen/report"
)

// predicting are the flags of predict.
type predictFlags struct {
	device                    deviceFlags
	level, inDistributionRate float64
	json, csv                 bool
	samples, page             string
	withoutDamaged            bool
}

func predictCommand(c *console) *cobra.Command {
	var p predictFlags
	command := &cobra.Command{
		Use: "predict RUN FILE|FOLDER...", Short: "answer for pictures: class, how sure, and whether they are familiar",
		Long: "Averages the probabilities of all samples of a run for each picture, and prints its class, the confidence, the entropy and\n" +
			"the mutual information (in nats), the classes that are plausible, and whether the picture is like those trained on.\n" +
			"The plausible classes hold the true one with the probability of --level (split conformal prediction), and the share\n" +
			"of --in-distribution-rate of pictures like those trained on is called familiar, both on pictures as those that the run was\n" +
			"calibrated on: fit does that by itself where data are held out for it.",
		Example: "  pollen predict runs/flowers rose.jpg pictures/\n  pollen predict runs/flowers pictures/ --level 0.99 --csv > answers.csv",
		Args: func(_ *cobra.Command, arguments []string) error {
			if len(arguments) < 2 {
				return usage("pollen: predict wants the folder of a run, and at least one picture or folder of pictures")
			}
			return nil
		},
		RunE: func(command *cobra.Command, arguments []string) error {
			return p.run(command.Context(), arguments[0], arguments[1:], c)
		},
	}
	f := command.Flags()
	f.Float64Var(&p.level, "level", 0.9, "probability with which the plausible classes hold the true one")
	f.Float64Var(&p.inDistributionRate, "in-distribution-rate", 0.95, "fraction of images like the training images to report as in distribution")
	f.BoolVar(&p.json, "json", false, "print the answers as JSON, with all probabilities")
	f.BoolVar(&p.csv, "csv", false, "print the answers as CSV, with all probabilities")
	f.StringVar(&p.samples, "samples", "", "write the probabilities under each sample to this file, as NPZ: probabilities [S N K], weights [S]")
	f.StringVar(&p.page, "page", "", "write a page with the pictures and answers into this folder")
	p.device.bind(f)
	bindWithoutDamaged(f, &p.withoutDamaged)
	return command
}

func (p *predictFlags) run(ctx context.Context, dir string, paths []string, c *console) error {
	if p.json && p.csv {
		return usage("pollen: json and csv: wants one of them")
	}
	if err := config.CheckPage(p.page, paths...); err != nil {
		return err
	}
	run, err := pollen.Open(dir, append(withoutDamagedIf(p.withoutDamaged), pollen.WithLevel(p.level), pollen.WithInDistributionRate(p.inDistributionRate),
		pollen.WithObserver(c.observer("predict")))...)
	if err != nil {
		return err
	}
	if err := remarkUnfinished(run, c); err != nil {
		return err
	}
	d := run.Manifest().Data
	images, err := datasets.ReadImages(paths, datasets.Options{
		Context: ctx, Height: d.Height, Width: d.Width, Channels: d.Channels, OnProgress: c.reading(), MaxSkipped: 1,
	})
	if err != nil {
		return err
	}
	c.skipped(images)
	device, err := p.device.open(c)
	if err != nil {
		return err
	}
	defer device.Close()
	defer c.endProgress()
	answers, err := p.answers(ctx, run.With(pollen.WithDevice(device)), images)
	if err != nil {
		return err
	}
	c.endProgress()
	if err := remarkLevels(run, p.level, p.inDistributionRate, c); err != nil {
		return err
	}
	return p.print(answers, d.ClassNames, c)
}

// remarkLevels says what a run's answers lack at these levels, and what gives it.
func remarkLevels(run *pollen.Run, level, familiar float64, c *console) error {
	m, train := run.Manifest(), program(os.Executable())
	calibration, err := run.Calibration()
	if errors.As(err, new(*pollen.DamagedError)) {
		return nil // it was left out, and that was said
	}
	if os.IsNotExist(errors.Cause(err)) {
		how := "hold images out: " + train + " fit --validation 0.1"
		if len(m.Parts) > 0 {
			how = train + " gather calibrates when all parts are done, or with --copy, on what they hold out"
		} else if finished, err := run.Finished(); err == nil && !finished {
			how = "it will be when it is finished, if images are held out"
		}
		c.remark("%s was not calibrated, so it has no prediction sets and detects nothing out of distribution: %s", run.Dir(), how)
		return nil
	}
	if err != nil {
		return err
	}
	n := calibration.Examples
	for _, lacks := range []struct {
		flag  string
		level float64
		what  string
	}{{"level", level, "the prediction set"}, {"in-distribution-rate", familiar, "what is in distribution"}} {
		if calibration.Supports(lacks.level) {
			continue
		}
		wants := math.Ceil(lacks.level/(1-lacks.level) - 1e-9) // see evaluate.Calibration.Supports
		how := "or a run with more held out"
		if share := math.Ceil(20*wants/float64(m.Data.Size+n)) / 20; share < 0.5 {
			how += fmt.Sprintf(", as by %s fit --validation %g", train, share)
		}
		if best := math.Floor(100*float64(n)/float64(n+1)) / 100; calibration.Supports(best) {
			how = fmt.Sprintf("--%s %g, ", lacks.flag, best) + how
		}
		c.remark("%s cannot say %s: --%s %g wants %.0f held-out images, the run has %d: %s",
			run.Dir(), lacks.what, lacks.flag, lacks.level, wants, n, how)
	}
	return nil
}

// answers predicts, and writes the other requested output.
func (p *predictFlags) answers(ctx context.Context, run *pollen.Run, images *datasets.Dataset) ([]pollen.Answer, error) {
	var visit func(probabilities []float32, weight float64) error
	var kept []float32
	var weights []float64
	if p.samples != "" {
		visit = func(probabilities []float32, weight float64) error {
			kept, weights = append(kept, probabilities...), append(weights, weight)
			return nil
		}
	}
	predictions, err := run.Predictions(ctx, images, visit)
	if err != nil {
		return nil, err
	}
	answers, err := run.Answers(predictions, images.Files)
	if err != nil {
		return nil, err
	}
	if p.samples != "" {
		shape := []int{len(weights), images.Len(), run.Manifest().Data.Classes()}
		if err := npz.Write(p.samples, npz.Array{Name: "probabilities", Shape: shape, Values: kept},
			npz.Array{Name: "weights", Shape: shape[:1], Values: weights}); err != nil {
			return nil, err
		}
	}
	if p.page == "" {
		return answers, nil
	}
	if err := os.MkdirAll(p.page, 0o755); err != nil {
		return nil, errors.Wrap(err, "pollen: page")
	}
	table, err := answerTable(answers)
	if err != nil {
		return nil, err
	}
	subject, err := predictedSubject(run, predictions, images)
	if err != nil {
		return nil, err
	}
	m := run.Manifest()
	return answers, report.WritePage(p.page, "Answers", fmt.Sprintf("%s, trained on %s", pollen.MethodText(m.Spec.Method), m.Data.Name),
		[]report.Subject{subject}, report.Section{Title: "Answers", Table: table})
}

func (p *predictFlags) print(answers []pollen.Answer, classes []string, c *console) error {
	switch {
	case p.json:
		lines := json.NewEncoder(c.out)
		lines.SetIndent("", "  ")
		return errors.Wrap(lines.Encode(answers), "pollen: json")
	case p.csv:
		return pollen.WriteCSV(c.out, answers, classes)
	}
	table, err := answerTable(answers)
	if err != nil {
		return err
	}
	return table.WriteText(c.out)
}

// answerTable has a row for each picture.
func answerTable(answers []pollen.Answer) (*report.Table, error) {
	table := report.NewTable("picture", report.Column{Title: "class"}, report.Column{Title: "confidence", Format: "%.3f"},
		report.Column{Title: "entropy", Format: "%.3f"}, report.Column{Title: "mutual information", Format: "%.3f"},
		report.Column{Title: "prediction set"}, report.Column{Title: "in distribution"})
	files := make([]string, len(answers))
	for i, a := range answers {
		files[i] = a.File
	}
	names := report.ShortNames(files)
	for i, a := range answers {
		plausible, familiar := "-", "-"
		if a.PredictionSet != nil {
			plausible = setText(a.PredictionSet)
		}
		if a.InDistribution != nil {
			familiar = map[bool]string{true: "yes", false: "no"}[*a.InDistribution]
		}
		if err := table.Add(names[i], a.Class, a.Confidence, a.Entropy, a.MutualInformation, plausible, familiar); err != nil {
			return nil, err
		}
	}
	return table, nil
}

// setText names the first of many classes.
func setText(set []string) string {
	const most = 4
	if len(set) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(set[:most], ", "), len(set)-most)
	}
	return cmp.Or(strings.Join(set, ", "), "none")
}
