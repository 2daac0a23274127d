package diagnostics

import (
	"math"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/langevin"
)

// someTraces returns traces of a scalar, a vector of two and a constant, in two chains.
func someTraces(draws int) *langevin.Traces {
	traces := langevin.NewTraces(2)
	traces.Add("level", 1)
	traces.Add("slopes", 2)
	traces.Add("divergences", 1)
	for i := range draws {
		for chain := range 2 {
			traces.Extend("level", chain)[0] = math.Sin(float64(7*i + chain))
			slopes := traces.Extend("slopes", chain)
			slopes[0], slopes[1] = math.Cos(float64(5*i+chain)), float64(chain)+0.01*math.Sin(float64(i))
			traces.Extend("divergences", chain)[0] = 0
		}
	}
	return traces
}

// TestSummarizeTraces: each row is the Summary of one element, in the order of the names.
func TestSummarizeTraces(t *testing.T) {
	traces := someTraces(60)
	for _, c := range []struct {
		names, want []string
	}{
		{nil, []string{"level", "slopes[0]", "slopes[1]", "divergences"}},
		{[]string{"divergences", "slopes"}, []string{"divergences", "slopes[0]", "slopes[1]"}},
	} {
		table, err := SummarizeTraces(traces, c.names...)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(table.String(), "\n")
		if len(table) != len(c.want) || len(lines) != len(table)+2 {
			t.Fatalf("%v: %d rows and %d lines, want %d rows", c.names, len(table), len(lines), len(c.want))
		}
		for i, row := range table {
			chains, err := traces.Of(row.Name, row.Element)
			if err != nil {
				t.Fatal(err)
			}
			want, err := Summarize(chains)
			if err != nil {
				t.Fatal(err)
			}
			if row.label() != c.want[i] || row.Summary.String() != want.String() || !strings.HasPrefix(lines[i+1], c.want[i]+" ") {
				t.Errorf("row %d: %s %v in the line %q, want %s %v", i, row.label(), row.Summary, lines[i+1], c.want[i], want)
			}
			if len(lines[i+1]) != len(lines[0]) {
				t.Errorf("row %d: %d columns, want the heading's %d", i, len(lines[i+1]), len(lines[0]))
			}
		}
	}
	table, err := SummarizeTraces(traces, "level", "slopes", "divergences")
	if err != nil {
		t.Fatal(err)
	}
	if got := table.MaxRHat(); got != table[2].RHat || !(got > 1.5) {
		t.Errorf("MaxRHat() = %v, want %v, of the chains that stay apart", got, table[2].RHat)
	}
	if got := table[3:].MaxRHat(); !math.IsNaN(got) {
		t.Errorf("MaxRHat() of a constant = %v, want NaN", got)
	}
}

// TestSummarizeTracesErrors: unknown names, too few draws and nil are errors.
func TestSummarizeTracesErrors(t *testing.T) {
	for want, traces := range map[string]*langevin.Traces{
		`no quantity "offset"`: someTraces(60), "level: diagnostics: summary: chains must have at least 12 values, got 5": someTraces(5), "must not be nil": nil,
	} {
		if _, err := SummarizeTraces(traces, "level", "offset"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}
