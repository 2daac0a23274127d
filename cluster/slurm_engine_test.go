//go:build linux

package cluster_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// requireSlurm names the environment variable that makes a missing Slurm a failure, and
// preemptions the one with the least number of evictions that a test must survive.
const (
	requireSlurm = "POLLEN_REQUIRE_SLURM"
	preemptions  = "POLLEN_PREEMPTIONS"
)

// slurm is a controller and one node, on this machine.
type slurm struct {
	t      *testing.T
	folder string
	node   string
}

// startSlurm starts Slurm for a test, which is skipped where it is not installed.
func startSlurm(t *testing.T) *slurm {
	t.Helper()
	for _, program := range []string{"munged", "slurmctld", "slurmd", "sbatch", "scontrol", "squeue", "scancel"} {
		if _, err := exec.LookPath(program); err != nil || os.Getuid() != 0 {
			if os.Getenv(requireSlurm) != "" {
				t.Fatalf("Slurm wants root and %s: %v", program, err)
			}
			t.Skipf("no %s, or not root: tasks are not run by Slurm (Debian's packages slurm-wlm and munge)", program)
		}
	}
	name, err := os.Hostname()
	check(t, err)
	name, _, _ = strings.Cut(name, ".")
	folder, err := os.MkdirTemp("", "slurm") // a test's own folder may have too long a name for sockets
	check(t, err)
	s := &slurm{t: t, folder: folder, node: name}
	t.Cleanup(func() { os.RemoveAll(folder) })
	for _, sub := range []string{"munge", "state", "spool", "log"} {
		check(t, os.Mkdir(s.path(sub), 0o755))
	}
	check(t, os.Chmod(folder, 0o755))
	check(t, os.WriteFile(s.path("key"), []byte(strings.Repeat("a key for one test only ", 20)), 0o600))
	check(t, os.WriteFile(s.path("slurm.conf"), []byte(s.configuration()), 0o644))
	t.Setenv("SLURM_CONF", s.path("slurm.conf"))
	s.daemon("munged", "--foreground", "--force", "--key-file", s.path("key"), "--socket", s.path("munge/socket"),
		"--pid-file", s.path("munge/pid"), "--log-file", s.path("log/munge"), "--seed-file", s.path("munge/seed"))
	s.until(20*time.Second, "munge", func() bool { _, err := os.Stat(s.path("munge/socket")); return err == nil })
	s.daemon("slurmctld", "-D", "-f", s.path("slurm.conf"))
	s.daemon("slurmd", "-D", "-f", s.path("slurm.conf"), "-N", name)
	s.until(60*time.Second, "the node", func() bool {
		out, _ := exec.Command("sinfo", "-h", "-o", "%T").CombinedOutput()
		return strings.HasPrefix(string(out), "idle")
	})
	return s
}

func (s *slurm) path(name string) string { return filepath.Join(s.folder, name) }

func (s *slurm) configuration() string {
	return strings.NewReplacer("@DIR@", s.folder, "@NODE@", s.node).Replace(`ClusterName=test
SlurmctldHost=@NODE@(127.0.0.1)
SlurmctldPort=16817
SlurmdPort=16818
SlurmUser=root
AuthType=auth/munge
# A task that was put back waits until its credential is over.
AuthInfo=socket=@DIR@/munge/socket,cred_expire=2
CryptoType=crypto/munge
StateSaveLocation=@DIR@/state
SlurmdSpoolDir=@DIR@/spool
SlurmctldPidFile=@DIR@/slurmctld.pid
SlurmdPidFile=@DIR@/slurmd.pid
SlurmctldLogFile=@DIR@/log/slurmctld
SlurmdLogFile=@DIR@/log/slurmd
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,batch_sched_delay=0,sched_min_interval=100000
ReturnToService=2
KillWait=10
JobRequeue=1
MpiDefault=none
NodeName=@NODE@ NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=@NODE@ Default=YES MaxTime=INFINITE State=UP
`)
}

// daemon runs a program until the test ends.
func (s *slurm) daemon(name string, arguments ...string) {
	s.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	command := exec.CommandContext(ctx, name, arguments...)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 10 * time.Second
	log, err := os.Create(s.path("log/" + name + ".out"))
	check(s.t, err)
	command.Stdout, command.Stderr = log, log
	check(s.t, command.Start())
	s.t.Cleanup(func() {
		stop()
		_ = command.Wait() // it was told to end
		log.Close()
		if s.t.Failed() {
			for _, file := range []string{log.Name(), s.path("log/" + name)} {
				content, _ := os.ReadFile(file)
				s.t.Logf("%s:\n%s", file, content[max(0, len(content)-4000):])
			}
		}
	})
}

// until waits for something.
func (s *slurm) until(most time.Duration, what string, done func() bool) {
	s.t.Helper()
	for end := time.Now().Add(most); !done(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("waited %v for %s", most, what)
		}
	}
}

// running are the tasks that run, as JOB_TASK.
func (s *slurm) running() []string {
	return strings.Fields(output(s.t, "squeue", "-h", "-r", "-t", "RUNNING", "-o", "%F_%K"))
}

// hurry lets tasks that were put back start at once: Slurm waits two minutes.
func (s *slurm) hurry() {
	for _, task := range strings.Fields(output(s.t, "squeue", "-h", "-r", "-t", "PENDING", "-o", "%F_%K")) {
		_ = exec.Command("scontrol", "update", "JobId="+task, "StartTime=now").Run() // it may just have started
	}
}

// waiting is how many tasks Slurm has not finished.
func (s *slurm) waiting() int {
	return len(strings.Fields(output(s.t, "squeue", "-h", "-r", "-o", "%i")))
}

// TestSlurm gives Slurm an array of 8 tasks, two at a time, and takes them away at random: by
// requeuing them, by draining their node, by killing them, by the warning before a time limit. All
// finish without a hand, and have the samples of one process that is not interrupted, to the bit.
func TestSlurm(t *testing.T) {
	s := startSlurm(t)
	least := 10
	if text := os.Getenv(preemptions); text != "" {
		var err error
		least, err = strconv.Atoi(text)
		check(t, err)
	}
	train := s.path("train")
	output(t, "go", "build", "-o", train, "../cmd/train")
	settings := "data: glyphs\nmodel: lenet-small\nmethod: sghmc\nsubset: 4000\nepochs: 16\nsamples: 8\nchains: 8\n"
	check(t, os.WriteFile(s.path("whole.yaml"), []byte(settings), 0o644))
	check(t, os.WriteFile(s.path("array.yaml"), []byte(settings+"parts: 8\n"), 0o644))
	output(t, train, "fit", "--config", s.path("whole.yaml"), "--folder", s.path("whole"), "--device", "cpu")

	output(t, train, "submit", "slurm", s.path("array.yaml"), "--folder", s.path("array"), "--cpus", "1", "--grace", "5", "--send")
	seed := uint32(1)
	random := func(below int) int {
		seed = seed*1664525 + 1013904223
		return int(seed>>16) % below
	}
	survived := map[string]int{}
	drained := func() {
		output(t, "scontrol", "update", "NodeName="+s.node, "State=DRAIN", "Reason=test")
		for _, task := range s.running() {
			_ = exec.Command("scontrol", "requeue", task).Run() // it may just have ended
		}
		output(t, "scontrol", "update", "NodeName="+s.node, "State=RESUME")
	}
	end := time.Now().Add(time.Duration(120+20*least) * time.Second)
	for s.waiting() > 0 {
		if time.Now().After(end) {
			t.Fatalf("tasks do not end: %s\n%s", output(t, "squeue", "-r"), output(t, train, "status", s.path("array")))
		}
		time.Sleep(time.Duration(300+random(1500)) * time.Millisecond)
		s.hurry()
		tasks := s.running()
		if len(tasks) == 0 || total(survived) >= 2*least {
			continue
		}
		task := tasks[random(len(tasks))]
		var err error
		how := []string{"requeued", "warned", "killed", "drained"}[random(4)]
		switch how {
		case "requeued":
			err = exec.Command("scontrol", "requeue", task).Run()
		case "warned":
			err = exec.Command("scancel", "--batch", "--signal=USR1", task).Run()
		case "killed": // as a node that fails: nobody is warned
			err = exec.Command("scancel", "--full", "--signal=KILL", task).Run()
			if err == nil {
				s.until(30*time.Second, "the end of "+task, func() bool { return !slices.Contains(s.running(), task) })
				err = exec.Command("scontrol", "requeue", task).Run()
			}
		case "drained":
			drained()
		}
		if err == nil { // else the task had just ended
			survived[how]++
		}
	}
	t.Logf("survived %v", survived)
	if total(survived) < least {
		t.Errorf("%d evictions, want at least %d: the tasks are too short for a test", total(survived), least)
	}
	sameSamples(t, s.path("whole"), s.path("array"))
	output(t, train, "gather", s.path("array"), "--folder", s.path("gathered"), "--device", "cpu")
	whole := output(t, train, "eval", s.path("whole"), "--json", "--device", "cpu")
	all := output(t, train, "eval", s.path("gathered"), "--json", "--device", "cpu")
	if scores := strings.ReplaceAll(all, s.path("gathered"), s.path("whole")); scores != whole {
		t.Errorf("the gathered run has the scores\n%s\nwant\n%s", scores, whole)
	}
	if status := output(t, train, "status", s.path("array")); !strings.Contains(status, "\n8 finished\n") {
		t.Errorf("the status is\n%s", status)
	}
}

func total(counts map[string]int) (sum int) {
	for _, n := range counts {
		sum += n
	}
	return sum
}

// sameSamples compares the samples of a run with those of its parts.
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
	command := exec.Command(name, arguments...)
	var complaint strings.Builder
	command.Stderr = &complaint
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s%s", name, arguments, err, out, &complaint)
	}
	return string(out)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
