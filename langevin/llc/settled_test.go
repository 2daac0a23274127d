package llc

import (
	"testing"

	"github.com/pollen-ml/pollen/diagnostics"
)

// TestSettled: the default grid does not end for the slack while an estimate is so imprecise that a
// further row may accept it.
func TestSettled(t *testing.T) {
	row := func(epsilon, lambda, standardError float64) Row {
		m := diagnostics.Measured{Value: diagnostics.Number(lambda), StandardError: diagnostics.Number(standardError)}
		return Row{StepSize: epsilon, Lambda: m, Raw: m, Temperature: diagnostics.Measured{Value: 1}, RHat: 1}
	}
	moving := row(0.25, 5, 0.05)
	moving.RHat = 2
	for _, c := range []struct {
		name     string
		slack    float64
		rows     []Row
		want     bool
		accepted int
	}{
		{"imprecise, slack within the interval", 0.45, []Row{row(1, 8, 1)}, false, -1},
		{"a precise row, unchecked", 0.45, []Row{row(1, 8, 1), row(0.5, 10, 0.05)}, false, 1},
		{"two precise rows", 0.45, []Row{row(1, 8, 1), row(0.5, 10, 0.05), row(0.25, 10, 0.05)}, true, 1},
		{"imprecise, slack above the interval", 0.6, []Row{row(1, 8, 1)}, true, -1},
		{"precise, slack too large", 0.6, []Row{row(1, 10, 0.05)}, true, -1},
		{"moving, slack too large", 0.6, []Row{moving}, false, -1},
		{"twice moving", 0, []Row{moving, moving}, true, -1},
		{"below", 0, []Row{row(1, -1, 0.05)}, true, -1},
		{"no slack, unchecked", 0, []Row{row(1, 10, 0.05)}, false, -1},
	} {
		e := &Estimation{Weights: 20, Slack: c.slack, Rows: c.rows}
		if got, v := e.settled(), e.Verdict(); got != c.want || v.Row != c.accepted {
			t.Errorf("%s: settled %v, row %d accepted, want %v and %d; problems %v: %s", c.name, got, v.Row, c.want, c.accepted, e.Problems(), v.Text)
		}
	}
}
