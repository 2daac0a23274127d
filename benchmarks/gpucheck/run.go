package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pkg/errors"
)

// check is a process with a time limit.
type check struct {
	name    string
	limit   time.Duration
	dir     string   // working directory, below the packed directory
	command []string // the program is searched for in the packed directory first
	env     []string
	// feature is what a rung of the ladder tests, and off switches it off for later checks.
	feature string
	off     []string
	output  string // a file in OUT that also receives the check's output
	// If the output of a failed check contains any of the excuses, this machine cannot run the
	// check.
	excuses []string
}

// verdict is a check's entry in the record.
type verdict struct {
	Check   string  `json:"check"`
	Status  string  `json:"status"` // "passed", "failed: ...", "cut: ..." or "left out: ..."
	Seconds float64 `json:"seconds"`
	Passed  int     `json:"passed,omitempty"` // tests
	Skipped int     `json:"skipped,omitempty"`
	// Failures are the failed tests, each with the first line of its message.
	Failures []string `json:"failures,omitempty"`
	Last     string   `json:"last,omitempty"` // the last lines of a failed check's output
	lost     bool     // an error of the check lost the GPU

	outputTail string // the last lines of its output
}

func (v verdict) failed() bool {
	return strings.HasPrefix(v.Status, "failed") || strings.HasPrefix(v.Status, "cut")
}

// noProgram is the excuse of a check whose program is not installed.
const noProgram = "executable file not found"

// notWanted is the status of a check that --only does not select. It is not recorded.
const notWanted = "left out: not asked for"

// noTime is the status of a check that was not begun.
const noTime = "cut: no time left"

// feature records whether a feature of the device is right.
type feature struct {
	Feature string   `json:"feature"`
	Right   bool     `json:"right"`
	Rung    string   `json:"rung"`
	Status  string   `json:"status,omitempty"` // of a rung that failed
	Off     []string `json:"switched off by,omitempty"`
}

// record is the result of a call.
type record struct {
	Call     string         `json:"call"`
	Date     string         `json:"date"`
	Revision string         `json:"revision"`
	Emulated bool           `json:"emulated"`
	Complete bool           `json:"complete"` // the call was not cut off
	Failed   bool           `json:"failed"`
	Machine  map[string]any `json:"machine"`
	Features []feature      `json:"features,omitempty"`
	Off      []string       `json:"switched off,omitempty"`
	Checks   []verdict      `json:"checks"`
	Seconds  float64        `json:"seconds"`
}

// runner runs the checks of a call.
type runner struct {
	options
	packed, out, work string // directories
	ctx               context.Context
	begin, end        time.Time
	log               *cappedFile

	mu     sync.Mutex
	record record
	dumped time.Time // of the newest dump that was saved
}

// Limits of what a call writes.
const (
	maxOfCheck = 1 << 20 // bytes of a check's output in the log
	maxOfFile  = 15 << 20
)

// newRunner prepares a call of the programs in the packed directory.
func newRunner(o options, packed, out string) (*runner, error) {
	r, err := &runner{options: o, packed: packed, begin: time.Now()}, error(nil)
	if r.out, err = filepath.Abs(out); err != nil {
		return nil, errors.Wrap(err, "gpucheck")
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return nil, errors.Wrap(err, "gpucheck")
	}
	if r.work, err = os.MkdirTemp("", "gpucheck"); err != nil {
		// A container may have no directory for temporary files.
		if r.work, err = os.MkdirTemp(r.packed, "work"); err != nil {
			return nil, errors.Wrap(err, "gpucheck")
		}
	}
	log, err := os.Create(filepath.Join(r.out, "log.txt"))
	if err != nil {
		return nil, errors.Wrap(err, "gpucheck")
	}
	r.log = &cappedFile{file: log, left: maxOfFile}
	r.end = r.begin.Add(o.limit())
	revision, err := os.ReadFile(filepath.Join(r.packed, "revision"))
	if err != nil {
		return nil, errors.Wrap(err, "gpucheck: the packed directory is incomplete")
	}
	r.record = record{
		Call: o.call, Date: r.begin.UTC().Format(time.RFC3339), Revision: strings.TrimSpace(string(revision)), Emulated: o.emulated, Machine: map[string]any{},
	}
	return r, nil
}

// run executes a call, and returns the exit status.
func (r *runner) run(plan func(*runner)) int {
	ctx, release := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer release()
	r.ctx = ctx
	defer os.RemoveAll(r.work)
	plan(r)
	r.mu.Lock()
	r.record.Complete = ctx.Err() == nil
	r.record.Failed = r.record.Failed || !r.record.Complete
	r.mu.Unlock()
	r.save()
	r.summarize()
	if r.record.Failed {
		return 1
	}
	return 0
}

// say prints a line to stdout and to the log.
func (r *runner) say(format string, values ...any) {
	line := fmt.Sprintf("%6.1f s  %s\n", time.Since(r.begin).Seconds(), fmt.Sprintf(format, values...))
	fmt.Print(line)
	io.WriteString(r.log, line)
}

// save writes the record atomically.
func (r *runner) save() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.record.Seconds = time.Since(r.begin).Seconds()
	text, err := json.MarshalIndent(r.record, "", " ")
	if err == nil {
		path := filepath.Join(r.out, "record.json")
		if err = os.WriteFile(path+".new", append(text, '\n'), 0o644); err == nil {
			err = os.Rename(path+".new", path)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gpucheck: saving the record failed:", err)
	}
	r.saveDumps()
}

// environment returns the environment of a check.
func (r *runner) environment(c check) []string {
	cache := filepath.Join(r.work, "cache")
	env := append(os.Environ(),
		"POLLEN_TEST_DEVICE=cuda", "POLLEN_TEST_DUMP="+filepath.Join(r.work, "dumps"),
		// Where containers have the driver and its tools, after the machine's own settings.
		"PATH="+os.Getenv("PATH")+":/usr/local/nvidia/bin:/usr/local/cuda/bin",
		"LD_LIBRARY_PATH="+strings.TrimPrefix(os.Getenv("LD_LIBRARY_PATH")+":/usr/local/nvidia/lib64:/usr/lib/wsl/lib", ":"),
		// Compiled code, the peers' too, stays in the working directory: there may be no home.
		"CUDA_CACHE_PATH="+cache, "CUDA_CACHE_MAXSIZE=2147483648", "CUDA_MODULE_LOADING=EAGER",
		"TRITON_CACHE_DIR="+filepath.Join(cache, "triton"), "TORCHINDUCTOR_CACHE_DIR="+filepath.Join(cache, "inductor"),
		"PYTHONUNBUFFERED=1",
	)
	for name, value := range map[string]string{"HOME": r.work, "USER": "nobody"} {
		if os.Getenv(name) == "" {
			env = append(env, name+"="+value)
		}
	}
	if r.emulated {
		library := filepath.Join(r.packed, "libemulator.so")
		env = append(env, "POLLEN_TEST_DEVICE=emulator", "POLLEN_EMULATOR="+library, "POLLEN_CUDA_DRIVER="+library)
	}
	r.mu.Lock()
	off := slices.Clone(r.record.Off)
	r.mu.Unlock()
	for _, setting := range c.env {
		// A feature that is off stays off, whatever a rung allows; a switch that the user has set
		// stays as it is.
		name, _, _ := strings.Cut(setting, "=")
		user := strings.HasPrefix(name, "POLLEN_CUDA_") && os.Getenv(name) != ""
		if !user && !slices.ContainsFunc(off, func(s string) bool { return strings.HasPrefix(s, name+"=") }) {
			env = append(env, setting)
		}
	}
	return append(env, off...)
}

// check runs one check and enters its verdict in the record, unless --only excludes it.
func (r *runner) check(c check) verdict {
	if !r.wants(c.name) {
		return verdict{Check: c.name, Status: notWanted}
	}
	v := r.try(c)
	r.enter(c, v)
	return v
}

// enter records a verdict.
func (r *runner) enter(c check, v verdict) {
	r.mu.Lock()
	r.record.Checks = append(r.record.Checks, v)
	r.record.Failed = r.record.Failed || v.failed()
	if c.feature != "" && !strings.HasPrefix(v.Status, "left out") && v.Status != noTime {
		f := feature{Feature: c.feature, Right: !v.failed(), Rung: c.name}
		if v.failed() {
			f.Status, f.Off = v.Status, c.off
			r.record.Off = append(r.record.Off, c.off...)
		}
		r.record.Features = append(r.record.Features, f)
	}
	r.mu.Unlock()
	tests := ""
	if v.Passed+v.Skipped+len(v.Failures) > 0 {
		tests = fmt.Sprintf(", tests: %d passed, %d skipped, %d failed", v.Passed, v.Skipped, len(v.Failures))
	}
	r.say("%s: %s, %.1f s%s", c.name, v.Status, v.Seconds, tests)
	for _, f := range v.Failures[:min(3, len(v.Failures))] {
		r.say("    %s", f)
	}
	if v.failed() && len(v.Failures) == 0 && v.Last != "" {
		r.say("    %s", strings.ReplaceAll(v.Last, "\n", "\n    "))
	}
	if v.failed() && len(c.off) > 0 {
		r.say("    from here on: %s", strings.Join(c.off, " "))
	}
	r.save()
}

// parallel runs checks concurrently, at most n at a time.
func (r *runner) parallel(n int, checks []check) {
	slots := make(chan struct{}, n)
	var all sync.WaitGroup
	for _, c := range checks {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			r.check(c)
		})
	}
	all.Wait()
}

// try runs a check.
func (r *runner) try(c check) verdict {
	v := verdict{Check: c.name}
	limit := min(c.limit, time.Until(r.end))
	if r.ctx.Err() != nil || limit < time.Second {
		v.Status = noTime
		return v
	}
	begin := time.Now()
	ctx, cancel := context.WithTimeout(r.ctx, limit)
	defer cancel()
	program := c.command[0]
	if packed := filepath.Join(r.packed, program); isFile(packed) {
		program = packed
	}
	command := exec.CommandContext(ctx, program, c.command[1:]...)
	command.Dir = filepath.Join(r.packed, c.dir)
	command.Env = r.environment(c)
	endAll(command)
	command.WaitDelay = 2 * time.Second
	output := &outputOf{log: r.log, name: c.name, left: maxOfCheck}
	var writer io.Writer = output
	if c.output != "" {
		file, err := os.OpenFile(filepath.Join(r.out, c.output), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			v.Status = "failed: " + err.Error()
			return v
		}
		defer file.Close()
		writer = io.MultiWriter(output, &cappedFile{file: file, left: maxOfFile / compileShards})
	}
	command.Stdout, command.Stderr = writer, writer
	err := command.Run()
	output.flush()
	v.Seconds = time.Since(begin).Seconds()
	v.Passed, v.Skipped, v.Failures, v.lost = output.passed, output.skipped, output.failures, output.lost
	text := strings.Join(output.last, "\n")
	v.outputTail = text
	switch {
	case err == nil && strings.HasSuffix(c.command[0], ".test") && v.Passed+v.Skipped == 0:
		v.Status = "failed: no test ran"
	case err == nil && v.Passed == 0 && v.Skipped > 0:
		v.Status = "left out: all of its tests were skipped"
	case err == nil:
		v.Status = "passed"
	case r.ctx.Err() != nil:
		v.Status = "cut: the call was stopped"
	case ctx.Err() != nil:
		v.Status = fmt.Sprintf("cut: stopped after %.0f s", limit.Seconds())
	default:
		v.Status = "failed: " + err.Error()
		for _, excuse := range c.excuses {
			if strings.Contains(text+err.Error(), excuse) {
				v.Status = "left out: " + excuse
			}
		}
	}
	if v.failed() {
		v.Last = text
		if running := output.running(); running != "" {
			v.Failures = append(v.Failures, running+": was running at the end")
		}
	}
	return v
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// summarize prints what failed.
func (r *runner) summarize() {
	for _, f := range r.record.Features {
		state := "right"
		if !f.Right {
			state = "WRONG"
		}
		fmt.Printf("%s  %s\n", state, f.Feature)
	}
	failed := 0
	for _, v := range r.record.Checks {
		if v.failed() {
			failed++
			fmt.Printf("%s: %s\n", v.Check, v.Status)
		}
	}
	fmt.Printf("%d checks, %d failed; %s\n", len(r.record.Checks), failed, filepath.Join(r.out, "record.json"))
}
