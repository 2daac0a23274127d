package diagnostics

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/langevin"
)

// SummaryTable has the summaries of several quantities, as of all parameters of a model.
type SummaryTable []SummaryRow

// SummaryRow describes the draws of one element of a quantity.
type SummaryRow struct {
	Name    string // of the quantity
	Element int    // in row-major order
	Single  bool   // whether it is the quantity's only element
	Summary
}

// SummarizeTraces summarizes all elements of the named quantities, in this order, as Summarize
// does; without names, of all quantities. The error names the quantity.
func SummarizeTraces(traces *langevin.Traces, names ...string) (SummaryTable, error) {
	if traces == nil {
		return nil, errors.New("diagnostics: summary: the traces must not be nil")
	}
	if len(names) == 0 {
		names = traces.Names()
	}
	var table SummaryTable
	for _, name := range names {
		elements := traces.Elements(name)
		for element := range max(elements, 1) { // Of has the error for an unknown name
			chains, err := traces.Of(name, element)
			if err != nil {
				return nil, err
			}
			row := SummaryRow{Name: name, Element: element, Single: elements == 1}
			if row.Summary, err = Summarize(chains); err != nil {
				return nil, errors.WithMessagef(err, "diagnostics: %s", row.label())
			}
			table = append(table, row)
		}
	}
	return table, nil
}

// label returns the name of the row, such as "slope" or "effects[3]".
func (r SummaryRow) label() string {
	if r.Single {
		return r.Name
	}
	return fmt.Sprintf("%s[%d]", r.Name, r.Element)
}

// MaxRHat returns the largest R-hat of the table's rows, or NaN if no row has one.
func (t SummaryTable) MaxRHat() float64 {
	largest := math.NaN()
	for _, r := range t {
		if !(r.RHat <= largest) && !math.IsNaN(r.RHat) {
			largest = r.RHat
		}
	}
	return largest
}

// String returns the table with a line for each row.
func (t SummaryTable) String() string {
	lines := [][]string{{"quantity", "mean", "+-", "std", "5 %", "50 %", "95 %", "R-hat", "ESS", "tail ESS"}}
	for _, r := range t {
		line := []string{r.label()}
		for _, v := range []struct {
			format string
			value  float64
		}{
			{"%.3g", r.Mean}, {"%.1g", r.StandardError}, {"%.3g", r.Std}, {"%.3g", r.Low}, {"%.3g", r.Median}, {"%.3g", r.High},
			{"%.3f", r.RHat}, {"%.0f", r.BulkESS}, {"%.0f", r.TailESS},
		} {
			if math.IsNaN(v.value) {
				line = append(line, "-")
				continue
			}
			line = append(line, fmt.Sprintf(v.format, v.value))
		}
		lines = append(lines, line)
	}
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var text strings.Builder
	for _, line := range lines {
		fmt.Fprintf(&text, "%-*s", widths[0], line[0])
		for i, cell := range line[1:] {
			fmt.Fprintf(&text, "  %*s", widths[i+1], cell)
		}
		text.WriteString("\n")
	}
	return text.String()
}
