package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// packed is gpu-check.sh in a folder of programs, given as shell scripts, on a machine without a
// home, a user's name or a folder for temporary files. The second result reads what the record says
// of each check, and whether anything failed.
func packed(t *testing.T, programs map[string]string) (*exec.Cmd, func() (status map[string]string, failed bool)) {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	folder, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
	write := func(name, text string) {
		if err := os.MkdirAll(filepath.Join(folder, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write("gpu-check.sh", string(script))
	for _, name := range tests {
		write(name+"/testdata", "")
	}
	for name, body := range programs {
		write(name, "#!"+bash+"\n"+body)
	}
	command := exec.Command(bash, filepath.Join(folder, "gpu-check.sh"), out)
	command.Env = []string{"PATH=" + filepath.Join(folder, "bin") + ":" + os.Getenv("PATH"), "TMPDIR=" + filepath.Join(folder, "none")}
	return command, func() (map[string]string, bool) {
		text, err := os.ReadFile(filepath.Join(out, "record.json"))
		if err != nil {
			t.Fatal(err)
		}
		var record struct {
			Failed int
			Checks []struct{ Check, Status string }
		}
		if err := json.Unmarshal(text, &record); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		status := map[string]string{}
		for _, c := range record.Checks {
			status[c.Check] = c.Status
		}
		if left, _ := filepath.Glob(filepath.Join(out, "work*")); len(left) > 0 {
			t.Errorf("it leaves %v", left)
		}
		return status, record.Failed != 0
	}
}

// TestScriptGoesOn: after a check fails the others go on, and what a machine cannot do is not a
// failure.
func TestScriptGoesOn(t *testing.T) {
	programs := map[string]string{
		"train":                 `if [[ $1 == devices ]]; then echo "cuda:0: a GPU"; else exit 3; fi`,
		"cuda.test":             `echo "--- PASS: TestOne (0.00s)"; echo "    --- PASS: TestOne/part (0.00s)"`,
		"langevin.test":         `echo "--- FAIL: TestOne (0.00s)"; echo "--- PASS: TestTwo (0.00s)"; exit 1`,
		"metropolis.test":       `echo "--- PASS: TestThree (0.00s)"`,
		"bin/compute-sanitizer": `echo "========= Error: Device not supported."; exit 1`,
		"bin/python3":           `exit 1`,
		"benchmarks":            `while [[ $1 != --json ]]; do shift; done; echo '{"entries": []}' >"$2"`,
	}
	command, record := packed(t, programs)
	if err := command.Run(); err == nil {
		t.Error("it ends as if nothing had failed")
	}
	status, failed := record()
	for check, want := range map[string]string{
		"devices": "passed", "compile": "passed, 2 tests passed", "training": "failed with 3", "samplers": "failed with 1, 2 tests passed, 0 skipped, 1 failed",
		"memcheck": "left out: Device not supported", "peers": "failed with 1", "benchmarks": "passed",
	} {
		if !strings.HasPrefix(status[check], want) {
			t.Errorf("%s: %q, want %q", check, status[check], want)
		}
	}
	if !failed {
		t.Error("the record says that nothing failed")
	}
}

// TestScriptWithoutGPU ends at once.
func TestScriptWithoutGPU(t *testing.T) {
	command, record := packed(t, map[string]string{"train": `echo "cpu: a processor"`})
	if err := command.Run(); err == nil {
		t.Error("it ends as if there were a GPU")
	}
	if status, failed := record(); !failed || !strings.HasPrefix(status["GPU"], "failed") || len(status) != 2 {
		t.Errorf("failed %v, %v", failed, status)
	}
}

// TestScriptIsStopped: what was recorded before the script is ended from outside stays.
func TestScriptIsStopped(t *testing.T) {
	begun := filepath.Join(t.TempDir(), "begun")
	command, record := packed(t, map[string]string{
		"train": `echo "cuda:0: a GPU"`, "cuda.test": `echo >"` + begun + `"; exec sleep 5`,
	})
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	for range 400 {
		if _, err := os.Stat(begun); err == nil {
			break
		}
		time.Sleep(25 * time.Millisecond)
	}
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err == nil {
		t.Error("it ends as if nothing had happened")
	}
	if status, _ := record(); status["devices"] != "passed" {
		t.Errorf("the record has %v", status)
	}
}
