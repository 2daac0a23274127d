//go:build unix

package command

import (
	"bytes"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pollen-ml/pollen/internal/config"
	"github.com/pollen-ml/pollen/internal/letters"
	"github.com/pollen-ml/pollen/internal/testenv"
)

// mainWithoutRoom is like main, but files cannot grow beyond a few KiB, as on a full disk.
func mainWithoutRoom() {
	signal.Ignore(syscall.SIGXFSZ)
	const room = 16 << 10
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: room, Max: room}); err != nil {
		panic(err)
	}
	os.Exit(run(os.Args[1:], newConsole()))
}

// processes starts programs in their own directory, with small data.
type processes struct {
	t   *testing.T
	dir string
}

func newProcesses(t *testing.T) processes {
	p := processes{t, t.TempDir()}
	if err := letters.Write(p.path("data/notmnist"), 200, 60); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p processes) path(name string) string { return filepath.Join(p.dir, name) }

// end runs a program until it ends, sending it a signal once the file exists, and returns its exit
// code, -1 if it was killed.
func (p processes) end(program string, arguments []string, file string, signal os.Signal) (code int, stdout, stderr string) {
	p.t.Helper()
	command := exec.Command(program, arguments...)
	command.Dir = p.dir
	command.Env = append(os.Environ(), "POLLEN_DATA="+p.path("data"))
	var out, remarks bytes.Buffer
	command.Stdout, command.Stderr = &out, &remarks
	if err := command.Start(); err != nil {
		p.t.Fatal(err)
	}
	ended := make(chan struct{})
	signalled := make(chan struct{})
	go func() {
		defer close(signalled)
		for signal != nil {
			if _, err := os.Stat(p.path(file)); err == nil {
				_ = command.Process.Signal(signal)
				return
			}
			select {
			case <-ended:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	_ = command.Wait()
	close(ended)
	<-signalled
	return command.ProcessState.ExitCode(), out.String(), remarks.String()
}

// want runs a program until it ends, and checks its exit code and some remarks.
func (p processes) want(code int, program string, arguments []string, remarks ...string) {
	p.t.Helper()
	got, _, stderr := p.end(program, arguments, "", nil)
	p.check(got, code, stderr, remarks)
}

func (p processes) check(got, code int, stderr string, remarks []string) {
	p.t.Helper()
	if got != code {
		p.t.Fatalf("exit code %d, want %d: %s", got, code, stderr)
	}
	for _, remark := range remarks {
		if !strings.Contains(stderr, remark) {
			p.t.Fatalf("remarks %q, want %q", stderr, remark)
		}
	}
}

// slowFit returns the arguments of a run of about a second, with a sampler that has more state than
// the weights.
func slowFit(dir string) []string {
	return strings.Fields("fit --data notmnist --method sghmc --schedule constant:0.002 --batch 10 --epochs 10 --burn-in 0 --samples 10 --chains 2" +
		" --folder " + dir)
}

func TestStoppedRunsGoOnBitForBit(t *testing.T) {
	p := newProcesses(t)
	p.want(0, "pollen", slowFit("whole"))

	const first = "samples/chain00000-step000000020.safetensors"
	code, stdout, stderr := p.end("pollen", slowFit("interrupted"), "interrupted/"+first, os.Interrupt)
	p.check(code, exitInterrupted, stderr, []string{
		" of 200 steps done, ", "Continue with: pollen fit --resume interrupted\n", "pollen: interrupted\n"})
	if stdout != "" {
		t.Errorf("results %q of a run that was interrupted", stdout)
	}
	p.want(0, "pollen", []string{"eval", "interrupted"}, " so far; continue it with: pollen fit --resume interrupted\n")
	p.want(exitUsage, "pollen", []string{"fit", "--resume", "interrupted", "--epochs", "20"}, "--start DIR begins another one at its samples")
	p.want(exitUsage, "pollen", append(slowFit("interrupted"), "--seed", "5", "--resume-or-start"),
		`seed must be "1" as there, got "5"; choose another --folder`)

	// The manifest is the last file of a run that can be resumed.
	code, _, stderr = p.end("pollen", slowFit("killed"), "killed/manifest.json", syscall.SIGKILL)
	p.check(code, -1, stderr, nil)

	// If a run is killed between its samples and their checkpoint, its samples are ahead of the
	// step where it resumes.
	if err := os.CopyFS(p.path("ahead"), os.DirFS(p.path("whole"))); err != nil {
		t.Fatal(err)
	}
	halves := []string{"samples/.chain00000-step000000020.safetensors.99-1.partial", "checkpoint/.state.safetensors.99-2.partial", ".manifest.json.99-3.partial"}
	for _, half := range halves {
		if err := os.WriteFile(p.path("ahead/"+half), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	earlier, err := os.ReadFile(p.path("interrupted/" + "checkpoint/state.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.path("ahead/"+"checkpoint/state.safetensors"), earlier, 0o644); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr = p.end("pollen", []string{"fit", "--resume", "ahead"}, "", nil)
	p.check(code, 0, stderr, []string{"resumed after "})
	if !strings.Contains(stdout, "\nsghmc       20  ") {
		t.Errorf("results %q, want 20 samples", stdout)
	}
	if err := sameRuns(p.path("whole"), p.path("ahead")); err != nil {
		t.Error(err)
	}
	for _, half := range halves {
		if _, err := os.Stat(p.path("ahead/" + half)); !os.IsNotExist(err) {
			t.Errorf("%s is there still (%v)", half, err)
		}
	}

	for _, run := range []string{"interrupted", "killed"} {
		if sameRuns(p.path("whole"), p.path(run)) == nil {
			t.Fatalf("%s was not stopped before its end", run)
		}
		checkpoint, err := os.ReadFile(p.path(run + "/" + "checkpoint/state.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		// A full disk damages nothing.
		p.want(exitFailure, "pollen-without-room", []string{"fit", "--resume", run}, "file too large", "Continue with: pollen fit --resume "+run)
		after, err := os.ReadFile(p.path(run + "/" + "checkpoint/state.safetensors"))
		if err != nil || !bytes.Equal(checkpoint, after) {
			t.Fatalf("the checkpoint of %s was changed (%v)", run, err)
		}
		p.want(0, "pollen", []string{"fit", "--resume", run}, "resumed after ")
		if err := sameRuns(p.path("whole"), p.path(run)); err != nil {
			t.Error(err)
		}
	}
}

// A run by NUTS that is killed, most likely in the middle of a trajectory, resumes from its last
// draw.
func TestKilledNUTSGoesOnBitForBit(t *testing.T) {
	testenv.NeedsAll(t, "processes that are killed")
	p := newProcesses(t)
	arguments := func(dir string) []string {
		return strings.Fields("fit --data notmnist --model mlp-4 --subset 40 --batch 40 --method nuts:max-depth=4 --epochs 120 --burn-in 60 --samples 60" +
			" --chains 2 --folder " + dir)
	}
	p.want(0, "pollen", arguments("whole"))
	for _, first := range []string{"manifest.json", "samples/chain00000-step000000064.safetensors"} {
		dir := "killed" + strings.ReplaceAll(first, "/", "-")
		code, _, stderr := p.end("pollen", arguments(dir), dir+"/"+first, syscall.SIGKILL)
		p.check(code, -1, stderr, nil)
		if sameRuns(p.path("whole"), p.path(dir)) == nil {
			t.Fatalf("%s was not killed before its end", dir)
		}
		p.want(0, "pollen", []string{"fit", "--resume", dir}, "resumed after ")
		if err := sameRuns(p.path("whole"), p.path(dir)); err != nil {
			t.Error(err)
		}
	}
}

func TestFullDiskLeavesNoHalfMadeRun(t *testing.T) {
	p := newProcesses(t)
	p.want(exitFailure, "pollen-without-room", slowFit("run"), "pollen: checkpoint: ", "file too large")
	if _, err := os.Stat(p.path("run")); !os.IsNotExist(err) {
		t.Errorf("run is there (%v)", err)
	}
}

func TestInterruptedMainJob(t *testing.T) {
	p := newProcesses(t)
	code, _, stderr := p.end("pollen", []string{"--folder", "main"}, "main/sgd/"+config.ManifestFile, os.Interrupt)
	p.check(code, exitInterrupted, stderr, []string{"Continue with: pollen fit --resume main/sgd\n", "pollen: interrupted\n"})
}

// Clusters signal a program before they take its machine away; exit codes distinguish that from
// failures.
func TestSignals(t *testing.T) {
	// A program that is notified of a signal does not pass on that it was started with the signal
	// ignored, as nohup does with the tests.
	notified := make(chan os.Signal, 1)
	signal.Notify(notified, syscall.SIGHUP)
	defer signal.Stop(notified)
	p := newProcesses(t)
	p.want(0, "pollen", slowFit("whole"))
	const first = "samples/chain00000-step000000020.safetensors"
	for _, c := range testenv.Some(t, 2, []struct {
		signal syscall.Signal
		code   int
	}{{syscall.SIGTERM, 143}, {syscall.SIGUSR1, 138}, {syscall.SIGUSR2, 140}, {syscall.SIGHUP, 129}}) {
		dir := "stopped" + strconv.Itoa(c.code)
		got, _, stderr := p.end("pollen", slowFit(dir), dir+"/"+first, c.signal)
		p.check(got, c.code, stderr, []string{"Continue with: pollen fit --resume " + dir})
		p.want(0, "pollen", []string{"fit", "--resume", dir}, "resumed after ")
		if err := sameRuns(p.path("whole"), p.path(dir)); err != nil {
			t.Error(err)
		}
	}
	// If the signal was ignored at the start, as by nohup, closing the terminal stops nothing.
	signal.Ignore(syscall.SIGHUP)
	defer signal.Reset(syscall.SIGHUP)
	got, _, stderr := p.end("pollen", slowFit("ignored"), "ignored/"+first, syscall.SIGHUP)
	p.check(got, 0, stderr, nil)
}
