package command

import (
	"fmt"

	"github.com/pollen-ml/pollen"
	"github.com/pollen-ml/pollen/internal/comparison"
	"github.com/pollen-ml/pollen/report"
)

func summarize(runs []scoredRun) (comparison.Summary, error) {
	var names []string
	var all []*pollen.Run
	for _, r := range runs {
		names, all = append(names, r.name), append(all, r.run)
	}
	return comparison.Summarize(names, all)
}

// printChains prints the tables of the runs' chains: length, convergence and temperatures. It
// returns the names of samplers that are not in equilibrium.
func printChains(runs []scoredRun, c *console) (notInEquilibrium []string, err error) {
	s, err := summarize(runs)
	if err != nil || s.Chains == nil {
		return nil, err
	}
	if err := printTables(c, append([]*report.Table{s.Chains}, s.Temperatures...)...); err != nil {
		return nil, err
	}
	for _, note := range s.Notes {
		fmt.Fprintln(c.out, note)
	}
	return s.NotInEquilibrium, nil
}
