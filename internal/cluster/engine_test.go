//go:build linux

package cluster_test

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/lock"
)

// preemptions is the environment variable with the minimum number of evictions that the tasks of
// a test must survive. Without it the number is small.
const (
	preemptions = "POLLEN_PREEMPTIONS"
	few         = 10
)

// place is a folder where the programs of a cluster run as long as a test does.
type place struct {
	t   *testing.T
	dir string
}

func newPlace(t *testing.T, name string) place {
	t.Helper()
	dir, err := os.MkdirTemp("", name) // a test's own folder may have too long a name for sockets
	check(t, err)
	t.Cleanup(func() {
		unmount(t, dir)
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	check(t, os.Chmod(dir, 0o755))
	check(t, os.Mkdir(filepath.Join(dir, "log"), 0o755))
	return place{t, dir}
}

// unmount takes away what is mounted below a folder: kubelets leave theirs.
func unmount(t *testing.T, dir string) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Error(err)
	}
	for _, line := range slices.Backward(strings.Split(string(mounts), "\n")) {
		if fields := strings.Fields(line); len(fields) > 4 && strings.HasPrefix(fields[4], dir+"/") {
			if err := syscall.Unmount(fields[4], syscall.MNT_DETACH); err != nil {
				t.Errorf("unmount %s: %v", fields[4], err)
			}
		}
	}
}

func (p place) path(name string) string { return filepath.Join(p.dir, name) }

// port returns a port on which nothing listens.
func (p place) port() string {
	p.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(p.t, err)
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	check(p.t, err)
	return port
}

// write writes a file, in which @DIR@ stands for the directory, and returns its path.
func (p place) write(name, content string, mode os.FileMode) string {
	p.t.Helper()
	path := p.path(name)
	check(p.t, os.MkdirAll(filepath.Dir(path), 0o755))
	check(p.t, os.WriteFile(path, []byte(strings.ReplaceAll(content, "@DIR@", p.dir)), mode))
	return path
}

// daemon runs a program until the test ends; its log has its own name.
func (p place) daemon(log, name string, arguments ...string) {
	p.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	command := exec.CommandContext(ctx, name, arguments...)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 10 * time.Second
	out, err := os.Create(p.path("log/" + log + ".out"))
	check(p.t, err)
	command.Stdout, command.Stderr = out, out
	check(p.t, command.Start())
	p.t.Cleanup(func() {
		stop()
		_ = command.Wait() // it was told to end
		out.Close()
		if p.t.Failed() {
			for _, file := range []string{out.Name(), p.path("log/" + log)} {
				if content, err := os.ReadFile(file); err == nil { // some programs have the second, too
					p.t.Logf("%s:\n%s", file, content[max(0, len(content)-4000):])
				}
			}
		}
	})
}

// until waits until done returns true, for at most the given time.
func (p place) until(most time.Duration, what string, done func() bool) {
	p.t.Helper()
	for end := time.Now().Add(most); !done(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("waited %v for %s", most, what)
		}
	}
}

// evictions counts the evicted tasks by the kind of eviction, and draws the random numbers.
type evictions struct {
	survived map[string]int
	least    int
	seed     uint32
}

func newEvictions(t *testing.T) *evictions {
	t.Helper()
	e := &evictions{survived: map[string]int{}, least: few, seed: 1}
	if text := os.Getenv(preemptions); text != "" {
		var err error
		e.least, err = strconv.Atoi(text)
		check(t, err)
	}
	return e
}

func (e *evictions) random(below int) int {
	e.seed = e.seed*1664525 + 1013904223
	return int(e.seed>>16) % below
}

func (e *evictions) total() (sum int) {
	for _, n := range e.survived {
		sum += n
	}
	return sum
}

// patience returns the maximum time for the tasks.
func (e *evictions) patience() time.Duration { return time.Duration(120+30*e.least) * time.Second }

// division is a run in one process, and the same divided into 8 tasks for a cluster.
type division struct {
	place
	program string // pollen, built
	tasks   string // its configuration
	array   string // the folder of the tasks' runs
}

// divide runs the one process. The more evictions are requested, the longer the run.
func (p place) divide(e *evictions) division {
	p.t.Helper()
	d := division{p, p.path("pollen"), "", p.path("runs/array")}
	output(p.t, "go", "build", "-o", d.program, "../../cmd/pollen")
	epochs := max(16, e.least)
	settings := "data: glyphs\nmodel: lenet-small\nmethod: sghmc\nsubset: 4000\nepochs: " + strconv.Itoa(epochs) + "\nsamples: 8\nchains: 8\n"
	d.tasks = p.write("array.yaml", settings+"parts: 8\n", 0o644)
	begun := time.Now()
	output(p.t, d.program, "fit", "--config", p.write("whole.yaml", settings, 0o644), "--folder", p.path("whole"), "--device", "cpu")
	p.t.Logf("one process: %v", time.Since(begun).Round(time.Second))
	return d
}

// compare requires that the tasks have the same bits as the one process, after enough evictions.
func (d division) compare(e *evictions) {
	t := d.t
	t.Helper()
	starts := 0
	records, err := filepath.Glob(filepath.Join(d.array, "*", lock.Record))
	check(t, err)
	for _, record := range records {
		content, err := os.ReadFile(record)
		check(t, err)
		var owner lock.Owner
		check(t, json.Unmarshal(content, &owner))
		starts += int(owner.Turn)
	}
	t.Logf("survived %d evictions: %v; %d processes wrote in the folders of %d tasks", e.total(), e.survived, starts, len(records))
	if e.total() < e.least {
		t.Errorf("%d evictions, want at least %d: the tasks are too short for a test", e.total(), e.least)
	}
	sameSamples(t, d.path("whole"), d.array)
	output(t, d.program, "gather", d.array, "--folder", d.path("gathered"), "--device", "cpu")
	whole := output(t, d.program, "eval", d.path("whole"), "--json", "--device", "cpu")
	all := output(t, d.program, "eval", d.path("gathered"), "--json", "--device", "cpu")
	if scores := strings.ReplaceAll(all, d.path("gathered"), d.path("whole")); scores != whole {
		t.Errorf("the gathered run has the scores\n%s\nwant\n%s", scores, whole)
	}
	if status := output(t, d.program, "status", d.array); !strings.Contains(status, "\n8 finished\n") {
		t.Errorf("the status is\n%s", status)
	}
}

// sameSamples compares the samples of a run with its parts' samples.
func sameSamples(t *testing.T, whole, parts string) {
	t.Helper()
	want, err := filepath.Glob(filepath.Join(whole, "samples", "*.safetensors"))
	check(t, err)
	got, err := filepath.Glob(filepath.Join(parts, "*", "samples", "*.safetensors"))
	check(t, err)
	if len(want) == 0 || len(got) != len(want) {
		t.Fatalf("%d samples, want the %d of one process", len(got), len(want))
	}
	for i, path := range got { // both are in the order of the chains
		ours, err := os.ReadFile(path)
		check(t, err)
		theirs, err := os.ReadFile(want[i])
		check(t, err)
		if filepath.Base(path) != filepath.Base(want[i]) || string(ours) != string(theirs) {
			t.Errorf("%s is not %s", path, want[i])
		}
	}
}

func output(t *testing.T, name string, arguments ...string) string {
	t.Helper()
	out, err := tried(exec.Command(name, arguments...))
	check(t, err)
	return out
}

// tried runs a command. Its error has all of the command's output.
func tried(command *exec.Cmd) (string, error) {
	var complaint strings.Builder
	command.Stderr = &complaint
	out, err := command.Output()
	return string(out), errors.Wrapf(err, "%v: %s%s", command.Args, out, &complaint)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
