//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fakeProgram stands for every program of a packed directory. Each call, except one that lists
// tests, appends a line to the file calls: its arguments and the switches of its environment. The
// file fault has a pattern of arguments, and the fault of the calls that match it: they fail,
// hang, crash, or lose the GPU once, as a benchmark or as tests.
const fakeProgram = `#!/bin/sh
packed=$(dirname "$0")
call="$(basename "$0") $*"
case "$call" in *-test.list*) printf 'TestFirst\nTestSecond\nTestConformance\n'; exit ;; esac
echo "$call $(env | grep ^POLLEN_CUDA_ | sort | tr '\n' ' ')" >>"$packed/calls"
case "$call" in
"pollen devices") cat "$packed/devices"; exit ;;
benchmarks*)
  while [ $# -gt 0 ]; do [ "$1" = --json ] && echo '{}' >"$2"; shift; done ;;
*) echo "=== RUN   TestFake" ;;
esac
if [ -e "$packed/fault" ] && read -r pattern what <"$packed/fault" && echo "$call" | grep -q -e "$pattern"; then
  case $what in
  fail) printf '    fake_test.go:7: 1 is wrong\n--- FAIL: TestFake (0.00s)\nFAIL\n'; exit 1 ;;
  hang) sleep 60 ;;
  crash) kill -SEGV $$ ;;
  lose) rm "$packed/fault"; exit 3 ;;
  sink)
    rm "$packed/fault"
    for part in 'a_[1]' b; do
      printf '=== RUN   TestFake/%s\n    fake_test.go:7: the GPU is lost since an earlier error\n' "$part"
      printf -- '--- FAIL: TestFake/%s (0.00s)\n' "$part"
    done
    echo '--- FAIL: TestFake (0.00s)'; exit 1 ;;
  esac
fi
case "$call" in benchmarks*) ;; *) printf -- '--- PASS: TestFake (0.00s)\nPASS\n' ;; esac
`

// packFakes makes a packed directory of fake programs, with or without a fault.
func packFakes(t *testing.T, fault string) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{"revision": "0123abc\n", "devices": "cpu\ncuda:0: Fake GPU\n"}
	if fault != "" {
		files["fault"] = fault + "\n"
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	programs := []string{"pollen", "benchmarks"}
	for _, pkg := range testPackages {
		programs = append(programs, pkg+".test")
		if err := os.Mkdir(filepath.Join(dir, pkg), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range programs {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(fakeProgram), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// callOf runs a call of the packed programs. It returns the record, the exit status, and the
// lines of the programs that were run, in order.
func callOf(t *testing.T, name, packed string, more ...func(*options)) (record, int, []string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	o := options{call: name, seconds: 100, python: "false"}
	for _, m := range more {
		m(&o)
	}
	r, err := newRunner(o, packed, out)
	if err != nil {
		t.Fatal(err)
	}
	status := r.run(calls[name].plan)
	made, err := os.ReadFile(filepath.Join(packed, "calls"))
	if err != nil {
		t.Error(err)
	}
	checkSizes(t, out)
	for _, asked := range regexp.MustCompile(`-test.run \^(Test\w+)\$ -test.skip (\S+)`).FindAllStringSubmatch(string(made), -1) {
		if regexp.MustCompile(asked[2]).MatchString(asked[1]) {
			t.Errorf("%s is asked for and skipped", asked[1])
		}
	}
	return readRecord(t, out), status, strings.Split(strings.TrimSpace(string(made)), "\n")
}

func readRecord(t *testing.T, out string) record {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(out, "record.json"))
	if err != nil {
		t.Fatal(err)
	}
	var r record
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// checkSizes: a call's output is at most 8 files of 16 MiB.
func checkSizes(t *testing.T, out string) {
	t.Helper()
	entries, err := os.ReadDir(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || !info.Mode().IsRegular() || info.Size() > 16<<20 {
			t.Errorf("%s: %v, %v", e.Name(), info, err)
		}
	}
	if len(entries) > 8 {
		t.Errorf("%d files: %v", len(entries), entries)
	}
}

// status returns the status of the named check in the record, or "" if there is none.
func (r record) status(name string) string {
	for _, v := range r.Checks {
		if v.Check == name {
			return v.Status
		}
	}
	return ""
}

// checkFailures requires that exactly one check has failed, and that its feature is the only wrong
// one.
func checkFailures(t *testing.T, r record, name, status, feature string) {
	t.Helper()
	for _, v := range r.Checks {
		if v.failed() != (v.Check == name) {
			t.Errorf("%s: %s %v", v.Check, v.Status, v.Failures)
		}
	}
	if got := r.status(name); !strings.HasPrefix(got, status) {
		t.Errorf("%s: %q, want %q", name, got, status)
	}
	for _, f := range r.Features {
		if f.Right == (f.Feature == feature) {
			t.Errorf("feature %+v", f)
		}
	}
	if !r.Failed || !r.Complete || r.Revision != "0123abc" || r.Machine["devices"] != "cpu cuda:0: Fake GPU" {
		t.Errorf("%+v", r)
	}
}

// TestRungFails: if a rung's test fails, hangs or crashes, the record names the rung's feature,
// the feature is off for all later checks, and no check is missing.
func TestRungFails(t *testing.T) {
	for _, c := range []struct{ fault, status, failure string }{
		{"fail", "failed: exit status 1", "TestFake: fake_test.go:7: 1 is wrong"},
		{"hang", "cut: stopped after 2 s", "TestFake: was running at the end"},
		{"crash", "failed: signal: segmentation fault", "TestFake: was running at the end"},
	} {
		t.Run(c.fault, func(t *testing.T) {
			before := rungSeconds
			rungSeconds = 2
			defer func() { rungSeconds = before }()
			r, status, made := callOf(t, "first", packFakes(t, "TestGroupedConvolutions "+c.fault))
			if status != 1 {
				t.Errorf("exit status %d", status)
			}
			checkFailures(t, r, "rung-wgmma", c.status, "wgmma, forward and by the image")
			if len(r.Features) != len(ladder) || !slices.Equal(r.Off, []string{noWgmma}) {
				t.Errorf("features %+v, off: %v", r.Features, r.Off)
			}
			for _, name := range []string{"compile-0", "steps", "calls", "TestFirst", "TestSecond", "conformance-11", "langevin", "peers"} {
				if got := r.status(name); got != "passed" {
					t.Errorf("%s: %q", name, got)
				}
			}
			for _, v := range r.Checks {
				if v.Check == "rung-wgmma" && !slices.Equal(v.Failures, []string{c.failure}) {
					t.Errorf("failures %v, want %s", v.Failures, c.failure)
				}
			}
			failed := slices.IndexFunc(made, func(s string) bool { return strings.Contains(s, "TestGroupedConvolutions") })
			for i, line := range made {
				if strings.Contains(line, noWgmma) != (i > failed) {
					t.Errorf("call %d, behind that which fails, %d: %s", i, failed, line)
				}
			}
		})
	}
}

// TestWhatIsOffStaysOff: a rung does not turn a feature on again that an earlier one has found
// wrong.
func TestWhatIsOffStaysOff(t *testing.T) {
	_, _, made := callOf(t, "first", packFakes(t, "fp32\\$ fail"))
	later := false
	for _, line := range made {
		if later && !strings.Contains(line, capability70) {
			t.Errorf("behind the failure: %s", line)
		}
		later = later || strings.Contains(line, "fp32$")
	}
	if !later {
		t.Error("no rung failed")
	}
}

// TestCallIsStopped: a call that is stopped by a signal leaves a complete record of its results so
// far.
func TestCallIsStopped(t *testing.T) {
	caught := make(chan os.Signal, 1) // the test survives a signal behind the call's end
	signal.Notify(caught, syscall.SIGTERM)
	defer signal.Stop(caught)
	packed := packFakes(t, "TestGroupedFilters hang")
	go func() {
		for range 200 {
			time.Sleep(50 * time.Millisecond)
			if made, err := os.ReadFile(filepath.Join(packed, "calls")); err == nil && strings.Contains(string(made), "TestGroupedFilters") {
				break
			}
		}
		syscall.Kill(os.Getpid(), syscall.SIGTERM)
	}()
	r, status, _ := callOf(t, "first", packed)
	if status != 1 || r.Complete || !r.Failed {
		t.Errorf("exit status %d, complete %v, failed %v", status, r.Complete, r.Failed)
	}
	if got := r.status("rung-filter"); got != "cut: the call was stopped" {
		t.Errorf("the check under way: %q", got)
	}
	if last := r.Features[len(r.Features)-1]; last.Rung != "rung-filter" || last.Right || last.Status != "cut: the call was stopped" {
		t.Errorf("the feature under way: %+v", last)
	}
	if got := r.status("rung-wgmma"); got != "passed" {
		t.Errorf("before it: %q", got)
	}
	if got := r.status("rung-graphs"); got != noTime {
		t.Errorf("behind it: %q", got)
	}
}

// TestTimeIsUp: a call ends within its limit.
func TestTimeIsUp(t *testing.T) {
	begin := time.Now()
	r, status, _ := callOf(t, "first", packFakes(t, "TestManyMetrics hang"), func(o *options) { o.seconds = 3 })
	if took := time.Since(begin); took > 8*time.Second || status != 1 || !r.Complete {
		t.Errorf("it took %v, exit status %d, complete %v", took, status, r.Complete)
	}
	if got := r.status("rung-open"); !strings.HasPrefix(got, "cut: stopped after") {
		t.Errorf("the rung: %q", got)
	}
}

// TestTestsAreTriedAgain: after tests have lost the GPU, each failed test runs again in its own
// process.
func TestTestsAreTriedAgain(t *testing.T) {
	r, status, made := callOf(t, "first", packFakes(t, "TestSecond sink"))
	if got := r.status("TestSecond"); got != "failed: exit status 1" || status != 1 {
		t.Errorf("%q; exit status %d", got, status)
	}
	for test, pattern := range map[string]string{"TestFake/a_[1]": `^TestFake$/^a_\[1\]$`, "TestFake/b": "^TestFake$/^b$"} {
		if got := r.status("TestSecond " + test); got != "passed" {
			t.Errorf("%s again: %q", test, got)
		}
		if n := strings.Count(strings.Join(made, "\n"), "-test.run "+pattern+" "); n != 1 {
			t.Errorf("%d runs of %s", n, pattern)
		}
	}
}

// TestOnlyTheWantedAreRecorded: checks that --only excludes are not in the record.
func TestOnlyTheWantedAreRecorded(t *testing.T) {
	r, status, _ := callOf(t, "first", packFakes(t, ""), func(o *options) { o.only = "devices,rung-open" })
	if len(r.Checks) != 2 || status != 0 {
		t.Errorf("exit status %d, %+v", status, r.Checks)
	}
}

// TestBenchmarksResume: a benchmark that has lost the GPU is started again.
func TestBenchmarksResume(t *testing.T) {
	r, status, made := callOf(t, "first", packFakes(t, "--work.calls lose"))
	checkFailures(t, r, "calls", fmt.Sprintf("failed: exit status %d", lostStatus), "")
	if got := r.status("calls-1"); got != "passed" || status != 1 {
		t.Errorf("again: %q; exit status %d", got, status)
	}
	for _, line := range made {
		if resumed := strings.Contains(line, "--resume"); resumed != (strings.Contains(line, "--work calls") && strings.Contains(line, "--resume")) {
			t.Errorf("resumed: %s", line)
		}
	}
	if n := strings.Count(strings.Join(made, "\n"), "--resume"); n != 1 {
		t.Errorf("%d are resumed", n)
	}
}

// TestNoGPU: without a GPU there is nothing to check.
func TestNoGPU(t *testing.T) {
	for name := range calls {
		packed := packFakes(t, "")
		if err := os.WriteFile(filepath.Join(packed, "devices"), []byte("cpu\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		r, status, made := callOf(t, name, packed)
		if got := r.status("a GPU"); status != 1 || len(made) != 1 || got != "failed: there is none" {
			t.Errorf("%s: exit status %d, %q, after %v", name, status, got, made)
		}
	}
}

// TestSpeed: the second call, without its tools.
func TestSpeed(t *testing.T) {
	r, status, made := callOf(t, "speed", packFakes(t, ""))
	if status != 0 || r.Failed || !r.Complete {
		t.Errorf("exit status %d: %+v", status, r.Checks)
	}
	for name, want := range map[string]string{
		"peers-bf16": "passed", "scaling": "passed", "updates": "passed", "training": "passed", "calibration": "passed", "peers-rest": "passed",
	} {
		if got := r.status(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if !strings.Contains(made[len(made)-1], "--resume") {
		t.Errorf("the last call begins the file of peers again: %s", made[len(made)-1])
	}
}

// TestUsage: a wrong command line and a failed check have different exit statuses.
func TestUsage(t *testing.T) {
	for _, arguments := range [][]string{nil, {"third"}, {"first"}, {"first", "--seconds", "0", "out"}, {"pack", "--only", "x", "y"}, {"speed", "a", "b"}} {
		if got := run(arguments); got != 2 {
			t.Errorf("%v: exit status %d", arguments, got)
		}
	}
}

// TestUsersSwitches: a switch that the user has set holds in all checks.
func TestUsersSwitches(t *testing.T) {
	t.Setenv("POLLEN_CUDA_GRAPHS", "slow")
	_, status, made := callOf(t, "first", packFakes(t, ""))
	for _, line := range made {
		if !strings.Contains(line, slowGraphs) {
			t.Errorf("exit status %d: %s", status, line)
		}
	}
}
