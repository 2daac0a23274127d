//go:build unix

package command

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pollen-ml/pollen/internal/lock"
	"github.com/pollen-ml/pollen/internal/testenv"
)

// TestDelayedTasks suspends the process of a task, as when its machine is cut off, and lets another
// process take over the task. If machines do not share locks, or the lock server has lost them, the
// first process can detect this only by the turn when it wakes up: it must leave the directory as
// it is, and report that another process writes there, whether or not that one has finished.
func TestDelayedTasks(t *testing.T) {
	p := newProcesses(t)
	slow := slowFit("whole")
	p.want(0, "pollen", slow)
	steps := testenv.Some(t, 1, []string{"020", "120"})
	for i, step := range steps {
		for _, done := range []bool{true, false} {
			dir := map[bool]string{true: "done", false: "during"}[done] + step
			task := append(slowFit(dir), "--resume-or-start")
			sample := func(step string) string {
				return p.path(dir + "/samples/chain00001-step000000" + step + ".safetensors")
			}

			delayed := p.start(task)
			p.until(delayed, "a sample", func() bool { return there(sample(step)) })
			time.Sleep(time.Duration(i) * 10 * time.Millisecond) // at different places between two samples
			delayed.stop(p)
			if err := os.Remove(p.path(dir + "/" + lock.File)); err != nil {
				t.Fatal(err)
			}
			next := p.start(task)
			var left map[string]string
			if done {
				if code := next.end(p); code != 0 {
					t.Fatalf("%s: the second process has the exit code %d: %s", dir, code, &next.remarks)
				}
				left = p.contents(dir)
			} else {
				p.until(next, "the second process's turn", func() bool {
					owner, err := lock.Who(p.path(dir))
					return err == nil && owner.Turn == 2
				})
			}
			if err := delayed.command.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			if code := delayed.end(p); code != exitLocked || !strings.Contains(delayed.remarks.String(), "this process must stop writing") {
				t.Errorf("%s: the delayed process has the exit code %d, want %d: %s", dir, code, exitLocked, &delayed.remarks)
			}
			if done {
				p.sameContents(dir, left)
			} else if code := next.end(p); code != 0 {
				t.Errorf("%s: the second process has the exit code %d: %s", dir, code, &next.remarks)
			}
			if err := sameRuns(p.path("whole"), p.path(dir)); err != nil {
				t.Error(err)
			}
			p.want(0, "pollen", []string{"verify", dir})
		}
	}
}

func there(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// process is a program that runs.
type process struct {
	command *exec.Cmd
	remarks strings.Builder
}

func (p processes) start(arguments []string) *process {
	p.t.Helper()
	started := &process{command: exec.Command("pollen", arguments...)}
	started.command.Dir = p.dir
	started.command.Env = append(os.Environ(), "POLLEN_DATA="+p.path("data"))
	started.command.Stderr = &started.remarks
	if err := started.command.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = started.command.Process.Kill() }) // it may have ended
	return started
}

// stop stops a process, and returns when it has stopped.
func (s *process) stop(p processes) {
	p.t.Helper()
	if err := s.command.Process.Signal(syscall.SIGSTOP); err != nil {
		p.t.Fatal(err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(s.command.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		p.t.Fatalf("the process did not stop (%v, %v): %s", status, err, &s.remarks)
	}
}

// end waits until a process ends, and returns its exit code.
func (s *process) end(p processes) int {
	p.t.Helper()
	late := time.AfterFunc(time.Minute, func() { _ = s.command.Process.Kill() }) // it may have ended
	defer late.Stop()
	_ = s.command.Wait() // the exit code reports the outcome
	return s.command.ProcessState.ExitCode()
}

// until waits until a condition holds that a process brings about.
func (p processes) until(of *process, what string, done func() bool) {
	p.t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("waited a minute for %s: %s", what, &of.remarks)
		}
	}
}

// contents returns the files of a directory.
func (p processes) contents(dir string) map[string]string {
	p.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(p.path(dir), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		all[path] = string(content)
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return all
}

// sameContents checks that a directory has the given files.
func (p processes) sameContents(dir string, want map[string]string) {
	p.t.Helper()
	got := p.contents(dir)
	for path, content := range want {
		if now, still := got[path]; !still || now != content {
			p.t.Errorf("%s was changed (still there: %t)", path, still)
		}
	}
	for path := range got {
		if _, before := want[path]; !before {
			p.t.Errorf("%s is new", path)
		}
	}
}

// TestTwoProcessesOfATask starts a task twice at the same time. One process makes the run; the
// other finds it finished or in progress, whenever it looks.
func TestTwoProcessesOfATask(t *testing.T) {
	p := newProcesses(t)
	p.want(0, "pollen", slowFit("whole"))
	for _, wait := range testenv.Some(t, 1, []time.Duration{20 * time.Millisecond, 0, 100 * time.Millisecond}) {
		dir := "twice" + wait.String()
		task := append(slowFit(dir), "--resume-or-start")
		first := p.start(task)
		time.Sleep(wait)
		second := p.start(task)
		a, b := first.end(p), second.end(p)
		if a != 0 && a != exitLocked || b != 0 && b != exitLocked || a == exitLocked && b == exitLocked {
			t.Errorf("%s: exit codes %d and %d, want 0 and 0 or %d:\n%s\n%s", dir, a, b, exitLocked, &first.remarks, &second.remarks)
		}
		if err := sameRuns(p.path("whole"), p.path(dir)); err != nil {
			t.Error(err)
		}
	}
}
