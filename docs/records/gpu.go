package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pollen-ml/pollen/report"
)

// stepCase matches the case of a training step on a GPU. The groups are the network, the batch
// size, the number of chains and the precision.
var stepCase = regexp.MustCompile(`^step (\S+) batch (\d+) \S+, (\d+) chains, (\S+)$`)

// gpuRow is a training step on a GPU, with its seconds by side.
type gpuRow struct {
	network, batch, chains, precision string
	seconds                           map[string]float64
	rate                              float64 // Pollen's images per second
}

// gpuRows returns the training steps of a benchmark record, in its order.
func gpuRows(name string) ([]*gpuRow, error) {
	entries, _, err := sides(name)
	if err != nil {
		return nil, err
	}
	var rows []*gpuRow
	for _, e := range entries {
		m := stepCase.FindStringSubmatch(e.Case)
		if m == nil {
			continue
		}
		i := slices.IndexFunc(rows, func(r *gpuRow) bool {
			return r.network == m[1] && r.batch == m[2] && r.chains == m[3] && r.precision == m[4]
		})
		if i < 0 {
			i = len(rows)
			row := gpuRow{network: m[1], batch: m[2], chains: m[3], precision: m[4], seconds: map[string]float64{}}
			rows = append(rows, &row)
		}
		rows[i].seconds[e.Side] = e.Seconds.Median
		if e.Side == "pollen" {
			rows[i].rate = e.Rate
		}
	}
	return rows, nil
}

// gpuPeers are the other sides, in the order of their columns.
var gpuPeers = []struct{ side, title string }{
	{"torch-graph", "PyTorch, graph"}, {"torch-compile", "compiled, graph"}, {"torch-tune", "tuned, graph"}, {"torch", "eager"}, {"jax", "JAX"},
}

// gpuSteps makes a table of training steps on a GPU: Pollen's microseconds and images per second,
// and how many times as long the other sides take.
func gpuSteps(name string) (string, error) {
	rows, err := gpuRows(name)
	if err != nil {
		return "", err
	}
	columns := []report.Column{{Title: "chains"}, {Title: "precision"}, {Title: "us"}, {Title: "images/s"}}
	var peers []string
	for _, p := range gpuPeers {
		if slices.ContainsFunc(rows, func(r *gpuRow) bool { return r.seconds[p.side] > 0 }) {
			peers, columns = append(peers, p.side), append(columns, report.Column{Title: p.title})
		}
	}
	table := report.NewTable("network", columns...)
	for _, r := range rows {
		own := r.seconds["pollen"]
		cells := []any{r.chains, r.precision, threeDigits(1e6 * own), millions(r.rate)}
		for _, p := range peers {
			cell := "-"
			if s := r.seconds[p]; s > 0 {
				cell = fmt.Sprintf("%.1fx", s/own)
			}
			cells = append(cells, cell)
		}
		if err := table.Add(r.network, cells...); err != nil {
			return "", err
		}
	}
	return text(table)
}

// gpuScaling makes a table with a row for each number of chains of a network on a GPU.
func gpuScaling(name string) (string, error) {
	rows, err := gpuRows(name)
	if err != nil {
		return "", err
	}
	table := report.NewTable("chains", report.Column{Title: "us a step"}, report.Column{Title: "us a chain"}, report.Column{Title: "images/s"})
	for _, r := range rows {
		own := 1e6 * r.seconds["pollen"]
		chains := 1.0
		fmt.Sscan(r.chains, &chains)
		if err := table.Add(r.chains, threeDigits(own), threeDigits(own/chains), millions(r.rate)); err != nil {
			return "", err
		}
	}
	return text(table)
}

// gpuCalls makes a table with a row for each kernel call of a training step on a GPU: the measured
// time and the predicted one.
func gpuCalls(name, chains string) (string, error) {
	entries, _, err := sides(name)
	if err != nil {
		return "", err
	}
	table := report.NewTable("call", report.Column{Title: "us"}, report.Column{Title: "predicted"}, report.Column{Title: "bound"}, report.Column{Title: "GB/s"})
	for _, e := range entries {
		if e.Call == nil || !strings.Contains(e.Case, fmt.Sprintf(", %s chains,", chains)) {
			continue
		}
		measured, predicted := fmt.Sprintf("%.1f", 1e6*e.Seconds.Median), fmt.Sprintf("%.1f", 1e6*e.Predicted)
		if err := table.Add(e.Call.Symbol, measured, predicted, cmp.Or(e.Call.Bound, "-"), threeDigits(e.Rate)); err != nil {
			return "", err
		}
	}
	return text(table)
}

// millions formats 1361000 as "1.36 M", and rates below a million in thousands, as "992 k".
func millions(rate float64) string {
	if rate >= 1e6 {
		return threeDigits(rate/1e6) + " M"
	}
	return threeDigits(rate/1e3) + " k"
}
