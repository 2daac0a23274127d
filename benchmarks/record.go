package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/file"
)

// record is one run of a command: the machine, and its figures.
type record struct {
	Command string  `json:"command"`
	Date    string  `json:"date"`
	Machine machine `json:"machine"`
	// Predicted is the GPU whose model predicted all figures, if none was measured.
	Predicted string   `json:"predicted,omitempty"`
	Entries   []entry  `json:"entries"`
	Left      []string `json:"left,omitempty"` // comparisons and sides left out by time or failure
	// Failed are the sides that ended with an error. Begun is the one being timed: if a command was
	// killed, the one that did not end.
	Failed []failure `json:"failed,omitempty"`
	Begun  *failure  `json:"begun,omitempty"`
}

// failure is a side of a comparison without figures.
type failure struct {
	Case   string   `json:"case"`
	Side   string   `json:"side"`
	Error  string   `json:"error,omitempty"`
	Stderr []string `json:"stderr,omitempty"` // the last lines of a peer
}

// machine describes the machine, on which figures depend as well as on the code.
type machine struct {
	Processor string             `json:"processor"`
	Cores     int                `json:"cores"`
	Threads   int                `json:"threads"`
	System    string             `json:"system"`
	Go        string             `json:"go"`
	Revision  string             `json:"revision"`
	Load      string             `json:"load"` // system's load averages at the start
	GPU       string             `json:"gpu,omitempty"`
	Peaks     map[string]float64 `json:"peaks,omitempty"`
}

// entry is one side of one comparison.
type entry struct {
	Case     string  `json:"case"`
	Side     string  `json:"side"`
	Seconds  figures `json:"seconds"`            // per step
	Rate     float64 `json:"rate,omitempty"`     // Units per second
	Unit     string  `json:"unit,omitempty"`     // "images", "GFLOP", "GB"
	Fraction float64 `json:"fraction,omitempty"` // of the machine's measured peak
	Memory   int     `json:"memory,omitempty"`   // bytes that the work takes, if measured
	Ratio    float64 `json:"ratio,omitempty"`    // this side's median over Pollen's

	Predicted float64 `json:"predicted,omitempty"` // seconds by the model of a GPU
	Model     string  `json:"model,omitempty"`     // that GPU's name, also if Seconds is the prediction
	Call      *call   `json:"call,omitempty"`      // if the entry is a call of a step
}

// call is a call of a step on a GPU.
type call struct {
	Symbol  string `json:"symbol"`
	Label   string `json:"label"`
	Blocks  [2]int `json:"blocks"` // of each chain
	Chains  int    `json:"chains"`
	Threads int    `json:"threads"` // of a block
	Shared  int    `json:"shared"`  // bytes of dynamic shared memory of a block
	Bound   string `json:"bound"`   // by the model
}

func newRecord() *record {
	return &record{
		Command: strings.Join(withoutPaths(os.Args[1:]), " "),
		Date:    time.Now().UTC().Format(time.DateOnly),
		Machine: machine{
			Processor: processor(), Cores: runtime.NumCPU(), Threads: runtime.GOMAXPROCS(0), System: runtime.GOOS + "/" + runtime.GOARCH,
			Go: runtime.Version(), Revision: revision(), Load: fileLine("/proc/loadavg", ""),
		},
	}
}

// processor returns the processor's name if the system reports it.
func processor() string {
	if name := fileLine("/proc/cpuinfo", "model name"); name != "" {
		return name
	}
	return "unknown"
}

// fileLine returns the first line of a file that begins with prefix, without the prefix; "" if
// there is none.
func fileLine(path, prefix string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(content)) {
		if rest, ok := strings.CutPrefix(line, prefix); ok {
			return strings.Trim(rest, " \t:\n")
		}
	}
	return ""
}

// withoutPaths removes the flags with paths of one machine.
func withoutPaths(args []string) []string {
	var kept []string
	for i := 0; i < len(args); i++ {
		switch name, _, joined := strings.Cut(args[i], "="); {
		case name != "--json" && name != "--python":
			kept = append(kept, args[i])
		case !joined:
			i++ // its value
		}
	}
	return kept
}

// revision returns the commit that the program was built from, with "+" if files had changed since:
// from the build, or else from git in the current directory.
func revision() string {
	commit, changed := "", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				commit = s.Value
			case s.Key == "vcs.modified" && s.Value == "true":
				changed = "+"
			}
		}
	}
	if commit != "" {
		return commit + changed
	}
	head, err := exec.Command("git", "rev-parse", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	if status, err := exec.Command("git", "status", "--porcelain", "--untracked-files=no").Output(); err != nil || len(status) > 0 {
		changed = "+"
	}
	return strings.TrimSpace(string(head)) + changed
}

// add appends an entry for each side of a comparison; the first side is Pollen's. A step
// processes items of the unit, such as images.
func (r *record) add(comparison string, sides []*side, items float64, unit string) {
	for _, s := range sides {
		f := s.figures()
		e := entry{Case: comparison, Side: s.name, Seconds: f, Rate: items / f.Median, Unit: unit}
		if s != sides[0] {
			e.Ratio = f.Median / sides[0].figures().Median
		}
		r.Entries = append(r.Entries, e)
	}
}

// write saves the record, unless it has no file, and reports that; with --quiet-check it refuses if
// the machine has become busy.
func (r *record) write(o *options) error {
	if o.quiet {
		if err := quiet(); err != nil {
			return errors.WithMessage(err, "nothing is recorded")
		}
	}
	if o.json == "" {
		return nil
	}
	if err := r.save(o.json); err != nil {
		return err
	}
	fmt.Println("written:", o.json)
	return nil
}

// save is write without a report.
func (r *record) save(path string) error {
	if path == "" {
		return nil
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return errors.Wrap(err, "benchmarks: record")
	}
	if err := file.Write(path, append(text, '\n')); err != nil {
		return errors.Wrap(err, "benchmarks: record")
	}
	return nil
}

// describe returns the machine in a line.
func (m machine) describe() string {
	return fmt.Sprintf("%s, %d threads, %s, load %s", m.Processor, m.Threads, m.Go, m.Load)
}

// printFrom prints the entries from the i-th on: a title for the comparison, and a line for each
// side.
func (r *record) printFrom(i int) { printEntries(r.Entries[i:]) }

func printEntries(entries []entry) {
	fmt.Println(entries[0].Case)
	for _, e := range entries {
		line := fmt.Sprintf("  %-20s %10.3f ms", e.Side, 1e3*e.Seconds.Median)
		if e.Unit != "" {
			line += fmt.Sprintf("  %10.4g %s/s", e.Rate, e.Unit)
		}
		if e.Memory > 0 {
			line += fmt.Sprintf("  %6d MiB", e.Memory>>20)
		}
		if e.Fraction > 0 {
			line += fmt.Sprintf("  %5.1f %% of peak", 100*e.Fraction)
		}
		if e.Ratio > 0 {
			line += fmt.Sprintf("  %6.2f times Pollen's time", e.Ratio)
		}
		fmt.Println(line)
	}
}
