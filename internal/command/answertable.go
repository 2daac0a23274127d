package command

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/report"
)

// answerTable has a row for each image with an answer.
func answerTable(answers []bayes.Answer) (*report.Table, error) {
	referring := slices.ContainsFunc(answers, func(a bayes.Answer) bool { return a.Refer != nil })
	columns := []report.Column{{Title: "class"}, {Title: "confidence", Format: "%.3f"}, {Title: "entropy", Format: "%.3f"},
		{Title: "mutual information", Format: "%.3f"}, {Title: "prediction set"}, {Title: "in distribution"}, {Title: "decision"}}
	if !referring {
		columns = columns[:len(columns)-1]
	}
	table := report.NewTable("image", columns...)
	files := make([]string, len(answers))
	for i, a := range answers {
		files[i] = a.File
	}
	names := report.ShortNames(files)
	for i, a := range answers {
		if a.Error != "" {
			continue
		}
		set, inDistribution := "-", "-"
		if a.PredictionSet != nil {
			set = setText(a.PredictionSet)
		}
		if a.InDistribution != nil {
			inDistribution = map[bool]string{true: "yes", false: "no"}[*a.InDistribution]
		}
		cells := []any{a.Class, a.Confidence, a.Entropy, a.MutualInformation, set, inDistribution}
		if referring {
			cells = append(cells, map[bool]string{true: "refer to a person", false: "answer"}[*a.Refer])
		}
		if err := table.Add(names[i], cells...); err != nil {
			return nil, err
		}
	}
	return table, nil
}

// setText lists the classes of a prediction set, at most maxNamed of them. An empty set is {},
// which no class is likely to be called.
func setText(set []string) string {
	const maxNamed = 4
	if len(set) > maxNamed {
		return fmt.Sprintf("%s and %d more", strings.Join(set[:maxNamed], ", "), len(set)-maxNamed)
	}
	return cmp.Or(strings.Join(set, ", "), "{}")
}
