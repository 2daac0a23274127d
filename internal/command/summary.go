package command

import (
	"fmt"
	"os"
	"slices"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/internal/comparison"
	"github.com/pollen-ml/pollen/report"
)

func summarize(runs []scoredRun) (comparison.Summary, error) {
	var names []string
	var all []*bayes.Run
	var mixing []*diagnostics.Mixing
	for _, r := range runs {
		names, all, mixing = append(names, r.name), append(all, r.run), append(mixing, r.mixing)
	}
	return comparison.Summarize(names, all, mixing)
}

// printChains prints the tables of the runs' chains: length, convergence and temperatures. If short
// is set, a line replaces the temperatures. It returns the names of samplers that are not in
// equilibrium.
func printChains(runs []scoredRun, short bool, c *console) (notInEquilibrium []string, err error) {
	s, err := summarize(runs)
	if err != nil || s.Chains == nil {
		return nil, err
	}
	tables, notes := append([]*report.Table{s.Chains}, s.Temperatures...), s.Notes
	if short {
		tables, notes = tables[:1], append(slices.Clone(s.Ranges), s.Verdicts...)
	}
	if err := printTables(c, tables...); err != nil {
		return nil, err
	}
	for _, note := range notes {
		fmt.Fprintln(c.out, note)
	}
	if s.Next != "" && !short { // else the advice has a command
		fmt.Fprintf(c.out, "Next: %s %s\n", program(os.Executable()), s.Next)
	}
	return s.NotInEquilibrium, nil
}
