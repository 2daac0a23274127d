package main

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/report"
)

// seeds are the assessments of runs that differ in nothing but their seed.
type seeds struct {
	name string // of the first run
	of   []*assessment
}

// bySeeds groups assessments of runs, in the order in which groups first appear.
func bySeeds(names, folders []string, assessments []*assessment) ([]*seeds, error) {
	var groups []*seeds
	known := map[string]*seeds{}
	for i, folder := range folders {
		manifest, err := readManifest(folder)
		if err != nil {
			return nil, err
		}
		config := manifest.Config
		config.Seed, config.Device, config.Threads, config.DataFolder = 0, "", 0, ""
		settings, err := json.Marshal(config)
		if err != nil {
			return nil, errors.Wrap(err, "train: seeds")
		}
		group, ok := known[string(settings)]
		if !ok {
			group = &seeds{name: names[i]}
			known[string(settings)] = group
			groups = append(groups, group)
		}
		group.of = append(group.of, assessments[i])
	}
	return groups, nil
}

// seedsTable has a row for each group of at least two runs: means over seeds, with their standard errors. It is nil when there is no such group.
func seedsTable(groups []*seeds, other bool) (*report.Table, error) {
	columns := []report.Column{{Title: "seeds", Format: "%.0f"}, {Title: "accuracy"}, {Title: "NLL"}, {Title: "ECE"}}
	if other {
		columns = append(columns, report.Column{Title: "AUROC"}, report.Column{Title: "FPR95"})
	}
	var table *report.Table
	for _, group := range groups {
		if len(group.of) < 2 {
			continue
		}
		if table == nil {
			table = report.NewTable("over seeds", columns...)
		}
		cells := []any{float64(len(group.of)), meanAndError("%.4f", group.of, func(a *assessment) float64 { return a.scores.Accuracy }),
			meanAndError("%.4f", group.of, func(a *assessment) float64 { return a.scores.NLL }),
			meanAndError("%.4f", group.of, func(a *assessment) float64 { return a.scores.ECE })}
		if other {
			cells = append(cells, meanAndError("%.4f", group.of, func(a *assessment) float64 { return a.detection.AUROC }),
				meanAndError("%.3f", group.of, func(a *assessment) float64 { return a.detection.FPR95 }))
		}
		if err := table.Add(group.name, cells...); err != nil {
			return nil, err
		}
	}
	return table, nil
}

// meanAndError is "mean ± standard error of the mean" of a figure over seeds; the mean alone of one seed.
func meanAndError[T any](format string, results []T, value func(r T) float64) string {
	n, mean, squares := float64(len(results)), 0.0, 0.0
	for _, r := range results {
		mean += value(r) / n
	}
	for _, r := range results {
		squares += (value(r) - mean) * (value(r) - mean)
	}
	if n < 2 {
		return fmt.Sprintf(format, mean)
	}
	return fmt.Sprintf(format+" ± "+format, mean, math.Sqrt(squares/(n-1)/n))
}
