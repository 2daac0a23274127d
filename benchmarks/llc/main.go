// Command llc compares local learning coefficients of package llc with devinterp's, on the same
// models, centres, step sizes, minibatches and numbers of steps, and times both.
//
//	go run ./benchmarks/llc -python /path/to/python      # a Python with devinterp 2
//
// The sides take turns. Each time includes all the work of a library for an estimate at one step
// size. Pollen compiles, finds the curvature, a minimum and the losses of all examples at the
// centre, makes the steps with their losses, squared gradients, distances and temperatures, and
// computes R-hat. devinterp's sample makes the steps with their losses, writes these and the
// examples of each minibatch to a file, and compute_llc reads them. A draw is a step of a chain.
// devinterp's own mean includes the burn-in; the column after it leaves that out, as Pollen's
// does.
package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/config"
	"github.com/pollen-ml/pollen/internal/npz"
	"github.com/pollen-ml/pollen/langevin/llc"
	"github.com/pollen-ml/pollen/report"
	"github.com/pollen-ml/pollen/tensor"
)

//go:embed peer.py
var peerProgram string

// request is a request to the peer.
type request struct {
	Path    string           `json:"path"`
	Layers  []map[string]any `json:"layers"`
	Loss    string           `json:"loss"`
	Epsilon float64          `json:"epsilon"`
	NBeta   float64          `json:"nbeta"`
	Gamma   float64          `json:"gamma"`
	Chains  int              `json:"chains"`
	Steps   int              `json:"steps"`
	BurnIn  int              `json:"burnIn"`
	Batch   int              `json:"batch"`
	Threads int              `json:"threads"`
	Seed    uint64           `json:"seed"`
}

// answer is the peer's answer to a request.
type answer struct {
	Seconds float64   `json:"seconds"`
	Lambda  float64   `json:"lambda"`
	Chains  []float64 `json:"chains"`
}

// entry is a row of the record.
type entry struct {
	Case            string    `json:"case"`
	Exact           float64   `json:"exact,omitempty"`
	Epsilon         float64   `json:"epsilon"`
	Steps           int       `json:"steps"`
	Chains          int       `json:"chains"`
	Batch           int       `json:"batch"`
	PollenLambda    float64   `json:"pollen"`
	PollenRaw       float64   `json:"pollenRaw"`
	PollenInterval  []float64 `json:"pollenInterval"`
	PeerLambda      float64   `json:"devinterp"`
	PeerAfterBurnIn float64   `json:"devinterpAfterBurnIn"`
	PollenSeconds   []float64 `json:"pollenSeconds"`
	PeerSeconds     []float64 `json:"devinterpSeconds"` // the faster of one thread and all
}

func main() {
	python := flag.String("python", "python3", "Python with devinterp")
	rounds := flag.Int("rounds", 3, "rounds in which the sides take turns")
	threads := flag.Int("threads", 2, "threads")
	only := flag.String("cases", "", "only cases whose names contain this")
	record := flag.String("json", "", "write the figures to this file")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "llc: takes flags only, got %q\n", flag.Arg(0))
		os.Exit(2)
	}
	if err := run(*python, *rounds, *threads, *only, *record); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(python string, rounds, threads int, only, record string) error {
	if rounds < 1 || threads < 1 {
		return errors.Errorf("llc: rounds and threads must be at least 1, got %d and %d", rounds, threads)
	}
	if err := config.CheckParent("json", record); err != nil {
		return err
	}
	cases, err := allCases(only)
	if err != nil {
		return err
	}
	if len(cases) == 0 {
		return errors.Errorf("llc: no case's name contains %q", only)
	}
	peer := exec.Command(python, "-c", peerProgram)
	peer.Stderr = io.Discard // its progress
	in, err := peer.StdinPipe()
	if err != nil {
		return errors.Wrap(err, "llc: peer")
	}
	out, err := peer.StdoutPipe()
	if err != nil {
		return errors.Wrap(err, "llc: peer")
	}
	if err := peer.Start(); err != nil {
		return errors.Wrap(err, "llc: peer")
	}
	defer func() { in.Close(); peer.Wait() }()
	dir, err := os.MkdirTemp("", "llc")
	if err != nil {
		return errors.Wrap(err, "llc")
	}
	defer os.RemoveAll(dir)
	ask := bufio.NewReader(out)
	var entries []entry
	for _, c := range cases {
		e, err := compare(c, dir, rounds, threads, in, ask)
		if err != nil {
			return errors.WithMessage(err, c.name)
		}
		entries = append(entries, e)
		fmt.Fprintf(os.Stderr, "%s: Pollen %.4g in %.2f s, devinterp %.4g (%.4g after burn-in) in %.2f s\n",
			c.name, e.PollenLambda, median(e.PollenSeconds), e.PeerLambda, e.PeerAfterBurnIn, median(e.PeerSeconds))
	}
	if record != "" {
		content, err := json.MarshalIndent(entries, "", "  ")
		if err != nil {
			return errors.Wrap(err, "llc")
		}
		if err := os.WriteFile(record, append(content, '\n'), 0o644); err != nil {
			return errors.Wrap(err, "llc")
		}
	}
	return printed(entries)
}

// compare lets both sides estimate a case in turns.
func compare(c benchmark, dir string, rounds, threads int, in io.Writer, out *bufio.Reader) (entry, error) {
	path := filepath.Join(dir, strings.ReplaceAll(c.name, " ", "-")+".npz")
	if err := npz.Write(path, c.arrays...); err != nil {
		return entry{}, err
	}
	beta := 1 / math.Log(float64(c.model.DataSize))
	if c.options.InverseTemperature > 0 {
		beta = c.options.InverseTemperature
	}
	o := c.options
	r := request{
		Path: path, Layers: c.layers, Loss: c.loss, Epsilon: o.StepSizes[0], NBeta: float64(c.model.DataSize) * beta, Gamma: o.Localization,
		Chains: o.Chains, Steps: o.Steps, BurnIn: o.BurnIn, Batch: o.Batch, Seed: 1,
	}
	e := entry{Case: c.name, Exact: c.exact, Epsilon: r.Epsilon, Steps: r.Steps, Chains: r.Chains, Batch: r.Batch}
	host := tensor.NewHost(threads)
	defer host.Close()
	for range rounds {
		start := time.Now()
		estimate, err := llc.Estimate(context.Background(), host, c.model, o)
		if err != nil {
			return e, err
		}
		e.PollenSeconds = append(e.PollenSeconds, time.Since(start).Seconds())
		row := estimate.Rows[0]
		low, high := row.Lambda.Interval()
		e.PollenLambda, e.PollenRaw, e.PollenInterval = float64(row.Lambda.Value), float64(row.Raw.Value), []float64{low, high}
		best := math.Inf(1)
		for _, r.Threads = range slices.Compact([]int{1, threads}) {
			a, err := r.ask(in, out)
			if err != nil {
				return e, err
			}
			e.PeerLambda, e.PeerAfterBurnIn = a.Lambda, 0
			for _, v := range a.Chains {
				e.PeerAfterBurnIn += v / float64(len(a.Chains))
			}
			best = min(best, a.Seconds)
		}
		e.PeerSeconds = append(e.PeerSeconds, best)
	}
	return e, nil
}

func (r request) ask(in io.Writer, out *bufio.Reader) (a answer, err error) {
	if err := json.NewEncoder(in).Encode(r); err != nil {
		return a, errors.Wrap(err, "llc: peer")
	}
	line, err := out.ReadBytes('\n')
	if err != nil {
		return a, errors.Wrap(err, "llc: the peer gives no answer; is devinterp installed?")
	}
	return a, errors.Wrap(json.Unmarshal(line, &a), "llc: peer")
}

// median returns the median of some values.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// printed prints the table.
func printed(entries []entry) error {
	var columns []report.Column
	for _, title := range []string{"exact", "Pollen", "95 % interval", "raw", "devinterp", "after burn-in", "draws/s", "devinterp's", "ratio"} {
		columns = append(columns, report.Column{Title: title})
	}
	table := report.NewTable("model", columns...)
	for _, e := range entries {
		exact := "-"
		if e.Exact > 0 {
			exact = fmt.Sprintf("%.3g", e.Exact)
		}
		draws, ours, theirs := float64(e.Chains*e.Steps), median(e.PollenSeconds), median(e.PeerSeconds)
		err := table.Add(e.Case, exact, fmt.Sprintf("%.4g", e.PollenLambda), fmt.Sprintf("%.4g to %.4g", e.PollenInterval[0], e.PollenInterval[1]),
			fmt.Sprintf("%.4g", e.PollenRaw), fmt.Sprintf("%.4g", e.PeerLambda), fmt.Sprintf("%.4g", e.PeerAfterBurnIn),
			fmt.Sprintf("%.0f", draws/ours), fmt.Sprintf("%.0f", draws/theirs), fmt.Sprintf("%.1fx", theirs/ours))
		if err != nil {
			return err
		}
	}
	return table.WriteText(os.Stdout)
}
