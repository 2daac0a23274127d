package main

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/report"
)

// tableOf returns the table for the words of a marker.
func tableOf(words []string) (string, error) {
	if len(words) < 2 {
		return "", errors.New("a marker must have a kind and a record")
	}
	switch words[0] {
	case "steps":
		return steps(words[1])
	case "costs":
		return costs(words[1])
	case "rates":
		return rates(words[1])
	case "pretrained":
		return pretrained(words[1])
	case "kernels":
		return kernels(words[1])
	case "gpu-steps":
		return gpuSteps(words[1])
	case "gpu-scaling":
		return gpuScaling(words[1])
	case "gpu-calls":
		if len(words) != 3 {
			return "", errors.New("gpu-calls must have a record and a number of chains")
		}
		return gpuCalls(words[1], words[2])
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
	case words[0] == "fidelity":
		return fidelity(r)
	case words[0] == "temperatures":
		return temperatures(r)
	case words[0] == "verdicts":
		return verdicts(r), nil
	}
	return "", errors.New("no such kind of table, or not its arguments")
}

// scores makes a table with a row for each of keys and a column for each run.
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

// seeds makes a table with a row for each method and a column for each of keys: the mean of the
// score over the method's runs, with its standard error.
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

// printed returns the printed table that begins with title, up to the next empty line.
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

// temperatures makes a table with the temperatures by layer of each run that measured them, and
// further rows for their kinetic, drift and gradient-noise parts.
func temperatures(r *Record) (string, error) {
	var table *report.Table
	for _, run := range r.Runs {
		if run.Diagnostics == nil {
			continue
		}
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
			cell func(t diagnostics.Temperature) string
		}{
			{run.Name, func(t diagnostics.Temperature) string {
				return fmt.Sprintf("%.3f ± %.3f", float64(t.Configurational), float64(t.StandardError))
			}},
			{"  kinetic", func(t diagnostics.Temperature) string { return report.OrDash("%.3f", t.Kinetic) }},
			{"  drift", func(t diagnostics.Temperature) string { return report.OrDash("%+.2f", t.Drift) }},
			{"  noise", func(t diagnostics.Temperature) string { return report.OrDash("%+.2f", t.GradientNoise) }},
		} {
			var cells []any
			for _, t := range list {
				cells = append(cells, row.cell(t))
			}
			if !slices.ContainsFunc(cells, func(c any) bool { return c != "-" }) {
				continue // this sampler does not measure it
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

// verdicts returns a line with the verdict on equilibrium of each run that sampled.
func verdicts(r *Record) string {
	var lines strings.Builder
	for _, run := range r.Runs {
		if run.Diagnostics == nil {
			continue
		}
		if verdict := run.Diagnostics.Verdict(1).Text; verdict != "" {
			fmt.Fprintf(&lines, "%s: %s.\n", run.Name, verdict)
		}
	}
	return lines.String()
}
