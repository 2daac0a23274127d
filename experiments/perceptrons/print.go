package main

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/pollen-ml/pollen/report"
)

// publishedErrors has the test errors in percent of Li et al. 2016, table 1, by the width of the
// hidden layers.
var publishedErrors = map[string]map[int]float64{
	"psgld":   {400: 1.40, 800: 1.26, 1200: 1.14},
	"sgld":    {400: 1.64, 800: 1.41, 1200: 1.40},
	"rmsprop": {400: 1.59, 800: 1.43, 1200: 1.39},
	"sgd":     {400: 1.72, 800: 1.47, 1200: 1.47},
}

// isPublished reports whether a row has the paper's settings, in which samplers run at T = 1/N.
func (c cell) isPublished() bool {
	return c.Data == "mnist" && (methodOf[c.Method].optimizer || c.Temperature == 1/float64(c.DataSize))
}

// print prints a table for each width: means over seeds, with their standard errors.
func (t *study) print(results []*result, out io.Writer) error {
	for i, width := range t.widths {
		if i > 0 {
			fmt.Fprintln(out)
		}
		if err := t.printWidth(width, results, out); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out, "\nMeans over seeds with standard errors. Samplers: averages over samples, weighted by the step size.\n"+
		"Rates: pSGLD and RMSprop %g, SGLD and SGD %g, halved after each fifth of %d epochs. Paper: Li et al. 2016, at T = 1/N.\n",
		t.preconditioned, t.rate, t.epochs)
	return err
}

func (t *study) printWidth(width int, results []*result, out io.Writer) error {
	corner := fmt.Sprintf("%d-%d-%d-%d", t.train.ImageSize(), width, width, t.train.Classes)
	table := report.NewTable(corner, report.Column{Title: "test error %"}, report.Column{Title: "NLL"},
		report.Column{Title: "equal weights %"}, report.Column{Title: "last state %"}, report.Column{Title: "seeds", Format: "%.0f"},
		report.Column{Title: "paper %"})
	var rows []cell
	of := map[cell][]*result{}
	for _, r := range results {
		if r.Cell.Width == width {
			of[r.Cell.row()] = append(of[r.Cell.row()], r)
		}
	}
	for row := range of {
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b cell) int { return t.order[a] - t.order[b] })
	for _, row := range rows {
		figures := func(format string, value func(r *result) float64) string {
			return meanAndError(format, of[row], value)
		}
		paper := "-"
		if v, ok := publishedErrors[row.Method][width]; ok && row.isPublished() {
			paper = fmt.Sprintf("%.2f", v)
		}
		err := table.Add(t.titles[row],
			figures("%.2f", func(r *result) float64 { return 100 * r.Average.Error }),
			figures("%.4f", func(r *result) float64 { return r.Average.NLL }),
			figures("%.2f", func(r *result) float64 { return 100 * r.Equal.Error }),
			figures("%.2f", func(r *result) float64 { return 100 * r.Last.Error }),
			float64(len(of[row])), paper)
		if err != nil {
			return err
		}
	}
	return table.WriteText(out)
}

// meanAndError formats a mean over seeds, with its standard error if there are at least two seeds.
func meanAndError(format string, results []*result, value func(r *result) float64) string {
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
