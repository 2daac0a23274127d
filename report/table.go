package report

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/pkg/errors"
)

// Column is a column of numbers: its title and format, such as "%.4f".
type Column struct {
	Title, Format string
}

// Table has a name for each row and a cell for each row and column.
type Table struct {
	corner  string
	columns []Column
	rows    [][]string
}

// NewTable returns a table without rows. corner is the title of the column of row names, such as
// "method".
func NewTable(corner string, columns ...Column) *Table {
	return &Table{corner: corner, columns: columns}
}

// Add adds a row. A cell is a float64, which is printed in its column's format, or a string, which
// is printed unchanged: "-" for a value that was not measured, "97.1 ± 0.2" for a value with its
// error. It returns an error for a wrong number of cells, other types, NaN and infinities.
func (t *Table) Add(name string, cells ...any) error {
	if len(cells) != len(t.columns) {
		return errors.Errorf("report: Table: row %q must have %[3]d cells, got %[2]d", name, len(cells), len(t.columns))
	}
	row := []string{name}
	for i, cell := range cells {
		switch v := cell.(type) {
		case float64:
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return errors.Errorf("report: Table: row %q, column %q: must be finite, got %v", name, t.columns[i].Title, v)
			}
			printed := fmt.Sprintf(t.columns[i].Format, v)
			if strings.Contains(printed, "%!") {
				return errors.Errorf("report: Table: column %q: format must be for a float64, such as %%.4f, got %q", t.columns[i].Title, t.columns[i].Format)
			}
			row = append(row, printed)
		case string:
			row = append(row, v)
		default:
			return errors.Errorf("report: Table: row %q, column %q: must be a float64 or a string, got %T", name, t.columns[i].Title, cell)
		}
	}
	t.rows = append(t.rows, row)
	return nil
}

// OrDash formats a number for a cell. NaN, for a value that was not measured, becomes "-".
func OrDash[T ~float64](format string, v T) string {
	if math.IsNaN(float64(v)) {
		return "-"
	}
	return fmt.Sprintf(format, float64(v))
}

// WriteText writes the table as plain text in aligned columns. It returns an error for a table
// without columns or rows.
func (t *Table) WriteText(w io.Writer) error {
	lines, widths, err := t.lines(func(s string) string { return s })
	if err != nil {
		return err
	}
	rule := make([]string, len(widths))
	for i, width := range widths {
		rule[i] = strings.Repeat("-", width)
	}
	var b strings.Builder
	for i, cells := range lines {
		b.WriteString(strings.Join(padded(cells, widths), "  ") + "\n")
		if i == 0 {
			b.WriteString(strings.Join(rule, "--") + "\n")
		}
	}
	_, err = io.WriteString(w, b.String())
	return errors.Wrap(err, "report: Table: write")
}

// WriteMarkdown writes the table as Markdown with aligned columns. It returns an error for a table
// without columns or rows.
func (t *Table) WriteMarkdown(w io.Writer) error {
	lines, widths, err := t.lines(func(s string) string { return strings.ReplaceAll(s, "|", `\|`) })
	if err != nil {
		return err
	}
	rule := make([]string, len(widths))
	for i, width := range widths {
		rule[i] = strings.Repeat("-", width-1) + ":" // figures to the right
	}
	rule[0] = strings.Repeat("-", widths[0])
	var b strings.Builder
	for i, cells := range lines {
		b.WriteString("| " + strings.Join(padded(cells, widths), " | ") + " |\n")
		if i == 0 {
			b.WriteString("| " + strings.Join(rule, " | ") + " |\n")
		}
	}
	_, err = io.WriteString(w, b.String())
	return errors.Wrap(err, "report: Table: write")
}

// titles returns the header.
func (t *Table) titles() []string {
	titles := []string{t.corner}
	for _, c := range t.columns {
		titles = append(titles, c.Title)
	}
	return titles
}

// check returns an error for a table without columns or rows.
func (t *Table) check() error {
	if len(t.columns) == 0 || len(t.rows) == 0 {
		return errors.Errorf("report: Table: must have at least 1 column and 1 row, got %d and %d", len(t.columns), len(t.rows))
	}
	return nil
}

// lines returns header and rows with escaped cells, and the width of each column in a terminal.
func (t *Table) lines(escape func(string) string) (lines [][]string, widths []int, err error) {
	if err := t.check(); err != nil {
		return nil, nil, err
	}
	widths = make([]int, len(t.columns)+1)
	for _, row := range append([][]string{t.titles()}, t.rows...) {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = escape(visible(cell))
			widths[i] = max(widths[i], cellWidth(cells[i]), 3)
		}
		lines = append(lines, cells)
	}
	return lines, widths, nil
}

// padded pads the first cell on its right, and the others on their left.
func padded(cells []string, widths []int) []string {
	full := make([]string, len(cells))
	for i, cell := range cells {
		padding := strings.Repeat(" ", widths[i]-cellWidth(cell))
		if i == 0 {
			full[i] = cell + padding
		} else {
			full[i] = padding + cell
		}
	}
	return full
}
