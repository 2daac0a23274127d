package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pollen-ml/pollen/report"
)

// side is one side of a comparison in a benchmark record.
type side struct {
	Case, Side string
	Seconds    struct{ Median, Least, Most float64 }
	Rate       float64 // units per second
	Fraction   float64 // of the measured peak
	Ratio      float64 // of its seconds to Pollen's
	Memory     int     // bytes
	Predicted  float64 // seconds
	Call       *struct{ Symbol, Bound string }
}

func (s side) network() string { return strings.Fields(s.Case)[1] }

// program returns the program of a side: torch for torch-compile.
func (s side) program() string {
	program, _, _ := strings.Cut(s.Side, "-")
	return program
}

// sides returns the entries of a benchmark record, and its networks in order of appearance.
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

// steps makes a table of training steps: Pollen's median milliseconds for each network, and how
// many times as long the fastest variant of each other side takes.
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
			if known, ok := best[e.program()]; e.network() == network && (!ok || e.Seconds.Median < known) {
				best[e.program()] = e.Seconds.Median
			}
		}
		cells := []any{fmt.Sprintf("%.1f", 1000*best["pollen"])}
		for _, other := range []string{"gorgonia", "torch", "jax"} {
			cell := "-" // the record has no such side
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

// costs makes a table of the milliseconds of training steps of samplers and of SGD
// measured in the same rounds.
func costs(name string) (string, error) {
	entries, networks, err := sides(name)
	if err != nil {
		return "", err
	}
	samplers, titles := []string{"sgld", "psgld"}, []string{"SGLD", "pSGLD"}
	var columns []report.Column
	for i, sampler := range samplers {
		if slices.ContainsFunc(entries, func(e side) bool { return strings.HasSuffix(e.Case, " "+sampler) }) {
			columns = append(columns, report.Column{Title: titles[i]}, report.Column{Title: "SGD, same rounds"})
		}
	}
	table := report.NewTable("network", columns...)
	for _, network := range networks {
		var cells []any
		for _, sampler := range samplers {
			for _, e := range entries {
				if fields := strings.Fields(e.Case); e.network() == network && fields[len(fields)-1] == sampler && strings.HasPrefix(e.Side, "pollen") {
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

// rates makes a table with a row for each case and a column for each program: the images per second
// of its fastest variant.
func rates(name string) (string, error) {
	entries, _, err := sides(name)
	if err != nil {
		return "", err
	}
	var cases, programs []string
	best := map[string]float64{}
	for _, e := range entries {
		if !slices.Contains(cases, e.Case) {
			cases = append(cases, e.Case)
		}
		if !slices.Contains(programs, e.program()) {
			programs = append(programs, e.program())
		}
		best[e.Case+e.program()] = max(best[e.Case+e.program()], e.Rate)
	}
	titles := map[string]string{"pollen": "Pollen", "torch": "PyTorch's best", "jax": "JAX"}
	var columns []report.Column
	for _, program := range programs {
		columns = append(columns, report.Column{Title: cmp.Or(titles[program], program)})
	}
	table := report.NewTable("images/s", columns...)
	for _, of := range cases {
		var cells []any
		for _, program := range programs {
			cells = append(cells, threeDigits(best[of+program]))
		}
		row, _, _ := strings.Cut(of, ", ")
		_, row, _ = strings.Cut(row, " ") // the row without the command
		if err := table.Add(row, cells...); err != nil {
			return "", err
		}
	}
	return text(table)
}

// kernels makes a table of products and convolutions: for each number of threads the fraction of
// the peak that Pollen reaches, and how many times as long PyTorch takes.
func kernels(name string) (string, error) {
	entries, _, err := sides(name)
	if err != nil {
		return "", err
	}
	var names, threads []string
	cells := map[string][2]string{} // by kernel and number of threads
	for _, e := range entries {
		what, _, winograd := strings.Cut(e.Case, " (")
		at := strings.LastIndex(what, ", ")
		kernel, on := what[:at], what[at+2:]
		if strings.HasPrefix(kernel, "updates") {
			continue
		}
		if !slices.Contains(names, kernel) {
			names = append(names, kernel)
		}
		if !slices.Contains(threads, on) {
			threads = append(threads, on)
		}
		c := cells[kernel+on]
		switch e.Side {
		case "pollen":
			c = [2]string{fmt.Sprintf("%.0f %%", 100*e.Fraction), "-"}
			if winograd {
				c[0] += " W"
			}
		case "torch":
			c[1] = fmt.Sprintf("%.2fx", e.Ratio)
		}
		cells[kernel+on] = c
	}
	var columns []report.Column
	for _, on := range threads {
		columns = append(columns, report.Column{Title: strings.Replace(on, "1 threads", "1 thread", 1)}, report.Column{Title: "PyTorch"})
	}
	table := report.NewTable("kernel", columns...)
	for _, kernel := range names {
		var row []any
		for _, on := range threads {
			row = append(row, cells[kernel+on][0], cells[kernel+on][1])
		}
		if err := table.Add(kernel, row...); err != nil {
			return "", err
		}
	}
	return text(table)
}

// threeDigits formats v rounded to three significant digits, 18565 as 18600.
func threeDigits(v float64) string {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 2, 64), 64)
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// pretrained makes a table of networks from ONNX files: Pollen's median milliseconds and memory for
// each work, and how many times as long, and how much memory, the fastest of the others takes.
func pretrained(name string) (string, error) {
	entries, networks, err := sides(name)
	if err != nil {
		return "", err
	}
	columns := []report.Column{{Title: "work"}, {Title: "Pollen"}, {Title: "MiB"}, {Title: "ONNX Runtime"}, {Title: "PyTorch"}, {Title: "its MiB"}}
	if !slices.ContainsFunc(entries, func(e side) bool { return e.program() == "torch" }) {
		columns = columns[:4]
	}
	table := report.NewTable("network", columns...)
	for _, network := range networks {
		for _, work := range []string{"features", "train"} {
			best := map[string]side{}
			for _, e := range entries {
				if e.network() != network || !strings.Contains(e.Case, " "+work+",") {
					continue
				}
				if known, ok := best[e.program()]; !ok || e.Seconds.Median < known.Seconds.Median {
					best[e.program()] = e
				}
			}
			ours, ran := best["pollen"]
			torch := best["torch"]
			if !ran {
				continue
			}
			row := []any{work, fmt.Sprintf("%.0f", 1e3*ours.Seconds.Median), fmt.Sprint(ours.Memory >> 20), "-", "-", "-"}
			if e, ok := best["onnxruntime"]; ok {
				row[3] = fmt.Sprintf("%.2fx", e.Ratio)
			}
			if torch.Ratio > 0 {
				row[4] = fmt.Sprintf("%.1fx", torch.Ratio)
			}
			if work == "train" { // a forward pass takes no more than making the network did
				row[5] = fmt.Sprint(torch.Memory >> 20)
			}
			if err := table.Add(network, row[:len(columns)]...); err != nil {
				return "", err
			}
		}
	}
	return text(table)
}
