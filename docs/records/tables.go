package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/report"
)

// tableOf makes the table of a marker.
func tableOf(words []string) (string, error) {
	if len(words) < 2 {
		return "", errors.New("wants a kind and a record")
	}
	switch words[0] {
	case "steps":
		return steps(words[1])
	case "costs":
		return costs(words[1])
	}
	r := &Record{}
	if err := read(filepath.Join("docs", "records", words[1]+".json"), r); err != nil {
		return "", err
	}
	switch {
	case words[0] == "scores" && len(words) == 3:
		return scores(r, strings.Split(words[2], ","))
	case words[0] == "seeds" && len(words) == 3:
		return seeds(r, strings.Split(words[2], ","))
	case words[0] == "printed" && len(words) > 2:
		return r.printed(strings.Join(words[2:], " "))
	case words[0] == "temperatures":
		return temperatures(r)
	case words[0] == "verdicts":
		return verdicts(r), nil
	}
	return "", errors.New("no such kind")
}

func read(path string, into any) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return errors.Wrap(err, "read")
	}
	return errors.Wrap(json.Unmarshal(content, into), path)
}

// text is a table as text.
func text(t *report.Table) (string, error) {
	var out strings.Builder
	err := t.WriteText(&out)
	return out.String(), err
}

// scores has a row for each of the scores and a column for each run.
func scores(r *Record, keys []string) (string, error) {
	var columns []report.Column
	for _, run := range r.Runs {
		columns = append(columns, report.Column{Title: run.Name})
	}
	table := report.NewTable("score", columns...)
	for _, key := range keys {
		score, err := scoreOf(key)
		if err != nil {
			return "", err
		}
		var cells []any
		for _, run := range r.Runs {
			v, ok := run.Scores[key]
			if !ok {
				return "", errors.Errorf("%s has no %s", run.Name, key)
			}
			cells = append(cells, fmt.Sprintf(score.Format, v))
		}
		if err := table.Add(r.title(score), cells...); err != nil {
			return "", err
		}
	}
	return text(table)
}

func scoreOf(key string) (evaluate.Score, error) {
	all := evaluate.Scores()
	at := slices.IndexFunc(all, func(s evaluate.Score) bool { return s.Name == key })
	if at < 0 {
		return evaluate.Score{}, errors.Errorf("no score %q", key)
	}
	return all[at], nil
}

func (r *Record) title(score evaluate.Score) string {
	return strings.NewReplacer("{in}", r.In, "{out}", r.Out).Replace(score.Title)
}

// seeds has a row for each method and a column for each of the scores: its mean over the method's
// runs, and the standard error of that.
func seeds(r *Record, keys []string) (string, error) {
	columns := []report.Column{{Title: "seeds"}}
	var shown []evaluate.Score
	for _, key := range keys {
		score, err := scoreOf(key)
		if err != nil {
			return "", err
		}
		shown = append(shown, score)
		columns = append(columns, report.Column{Title: r.title(score)})
	}
	var methods []string
	runs := map[string][]*evaluate.Assessment{}
	for _, run := range r.Runs {
		at := strings.LastIndex(run.Name, "-")
		if at < 0 {
			return "", errors.Errorf("run %s has no seed in its name", run.Name)
		}
		method := run.Name[:at]
		if runs[method] == nil {
			methods = append(methods, method)
		}
		runs[method] = append(runs[method], &evaluate.Assessment{Values: run.Scores})
	}
	table := report.NewTable("over seeds", columns...)
	for _, method := range methods {
		cells := []any{fmt.Sprint(len(runs[method]))}
		for _, score := range shown {
			cells = append(cells, score.Over(runs[method]))
		}
		if err := table.Add(method, cells...); err != nil {
			return "", err
		}
	}
	return text(table)
}

// printed is the table that begins with a title, up to the next empty line.
func (r *Record) printed(title string) (string, error) {
	from := slices.IndexFunc(r.Printed, func(line string) bool { return strings.HasPrefix(line, title+"  ") })
	if from < 0 {
		return "", errors.Errorf("nothing printed begins with %q", title)
	}
	lines := r.Printed[from:]
	if to := slices.Index(lines, ""); to >= 0 {
		lines = lines[:to]
	}
	return strings.Join(lines, "\n") + "\n", nil
}

// temperatures has a row for each run that has them, and more for their parts.
func temperatures(r *Record) (string, error) {
	var table *report.Table
	for _, run := range r.Runs {
		list := run.Diagnostics.Temperatures
		if len(list) < 2 || math.IsNaN(float64(list[0].Configurational)) {
			continue
		}
		if table == nil {
			var columns []report.Column
			for _, t := range list {
				columns = append(columns, report.Column{Title: t.Layer})
			}
			table = report.NewTable("temperature", columns...)
		}
		for _, row := range []struct {
			name string
			cell func(t pollen.Temperature) string
		}{
			{run.Name, func(t pollen.Temperature) string {
				return fmt.Sprintf("%.3f ± %.3f", float64(t.Configurational), float64(t.StandardError))
			}},
			{"  kinetic", func(t pollen.Temperature) string { return orDash("%.3f", t.Kinetic) }},
			{"  drift", func(t pollen.Temperature) string { return orDash("%+.2f", t.Drift) }},
			{"  noise", func(t pollen.Temperature) string { return orDash("%+.2f", t.Heating) }},
		} {
			var cells []any
			for _, t := range list {
				cells = append(cells, row.cell(t))
			}
			if err := table.Add(row.name, cells...); err != nil {
				return "", err
			}
		}
	}
	if table == nil {
		return "", errors.New("no run has temperatures")
	}
	return text(table)
}

func orDash(format string, v pollen.Number) string {
	if math.IsNaN(float64(v)) {
		return "-"
	}
	return fmt.Sprintf(format, float64(v))
}

// verdicts has a line for each run that sampled.
func verdicts(r *Record) string {
	var lines strings.Builder
	for _, run := range r.Runs {
		if verdict := run.Diagnostics.Equilibrium(1); verdict != "" {
			fmt.Fprintf(&lines, "%s: %s\n", run.Name, verdict)
		}
	}
	return lines.String()
}

// side is one side of a comparison in a record of the benchmarks.
type side struct {
	Case, Side string
	Seconds    struct{ Median, Least, Most float64 }
}

func (s side) network() string { return strings.Fields(s.Case)[1] }

// sides are those of a record of the benchmarks, and the networks in order.
func sides(name string) (entries []side, networks []string, err error) {
	var r struct{ Entries []side }
	if err := read(filepath.Join("benchmarks", "history", name+".json"), &r); err != nil {
		return nil, nil, err
	}
	for _, e := range r.Entries {
		if network := e.network(); !slices.Contains(networks, network) {
			networks = append(networks, network)
		}
	}
	return r.Entries, networks, nil
}

// steps are training steps of networks: of each side the best way's median.
func steps(name string) (string, error) {
	entries, networks, err := sides(name)
	if err != nil {
		return "", err
	}
	table := report.NewTable("network", report.Column{Title: "Pollen"}, report.Column{Title: "Gorgonia"}, report.Column{Title: "PyTorch's best"},
		report.Column{Title: "JAX"})
	for _, network := range networks {
		best := map[string]float64{}
		for _, e := range entries {
			program, _, _ := strings.Cut(e.Side, "-") // torch-compile is one of PyTorch's ways
			if known, ok := best[program]; e.network() == network && (!ok || e.Seconds.Median < known) {
				best[program] = e.Seconds.Median
			}
		}
		cells := []any{fmt.Sprintf("%.1f", 1000*best["pollen"])}
		for _, other := range []string{"gorgonia", "torch", "jax"} {
			cell := "-" // without that side
			if seconds, ok := best[other]; ok {
				cell = fmt.Sprintf("%.1fx", seconds/best["pollen"])
			}
			cells = append(cells, cell)
		}
		if err := table.Add(network, cells...); err != nil {
			return "", err
		}
	}
	return text(table)
}

// costs are training steps of samplers beside SGD's, which took turns with them.
func costs(name string) (string, error) {
	entries, networks, err := sides(name)
	if err != nil {
		return "", err
	}
	samplers := []string{"sgld", "psgld"}
	table := report.NewTable("network", report.Column{Title: "SGLD"}, report.Column{Title: "SGD beside it"}, report.Column{Title: "pSGLD"},
		report.Column{Title: "SGD beside it"})
	for _, network := range networks {
		var cells []any
		for _, sampler := range samplers {
			for _, e := range entries {
				if fields := strings.Fields(e.Case); e.network() == network && fields[len(fields)-1] == sampler {
					cells = append(cells, fmt.Sprintf("%.1f (%.1f-%.1f)", 1000*e.Seconds.Median, 1000*e.Seconds.Least, 1000*e.Seconds.Most))
				}
			}
		}
		if err := table.Add(network, cells...); err != nil {
			return "", err
		}
	}
	return text(table)
}
