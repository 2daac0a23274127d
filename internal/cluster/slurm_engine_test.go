//go:build linux

package cluster_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// requireSlurm is the environment variable that makes a missing Slurm a failure.
const requireSlurm = "POLLEN_REQUIRE_SLURM"

// slurm is a controller and one node, on this machine.
type slurm struct {
	place
	node string
}

// startSlurm starts Slurm for a test, which is skipped where it is not installed.
func startSlurm(t *testing.T) *slurm {
	t.Helper()
	for _, program := range []string{"munged", "slurmctld", "slurmd", "sbatch", "scontrol", "squeue", "scancel"} {
		if _, err := exec.LookPath(program); err != nil || os.Getuid() != 0 {
			if os.Getenv(requireSlurm) != "" {
				t.Fatalf("Slurm needs root and %s: %v", program, err)
			}
			t.Skipf("no %s, or not root: tasks are not run by Slurm (Debian's packages slurm-wlm and munge)", program)
		}
	}
	name, err := os.Hostname()
	check(t, err)
	name, _, _ = strings.Cut(name, ".")
	s := &slurm{newPlace(t, "slurm"), name}
	for _, sub := range []string{"munge", "state", "spool"} {
		check(t, os.Mkdir(s.path(sub), 0o755))
	}
	s.write("key", strings.Repeat("a key for one test only ", 20), 0o600)
	configuration := strings.NewReplacer("@NODE@", name, "@CONTROL@", s.port(), "@WORK@", s.port()).Replace(slurmConfiguration)
	t.Setenv("SLURM_CONF", s.write("slurm.conf", configuration, 0o644))
	s.daemon("munged", "munged", "--foreground", "--force", "--key-file", s.path("key"), "--socket", s.path("munge/socket"),
		"--pid-file", s.path("munge/pid"), "--log-file", s.path("log/munge"), "--seed-file", s.path("munge/seed"))
	s.until(20*time.Second, "munge", func() bool { _, err := os.Stat(s.path("munge/socket")); return err == nil })
	s.daemon("slurmctld", "slurmctld", "-D", "-f", s.path("slurm.conf"))
	s.daemon("slurmd", "slurmd", "-D", "-f", s.path("slurm.conf"), "-N", name)
	s.until(60*time.Second, "the node", func() bool {
		out, _ := exec.Command("sinfo", "-h", "-o", "%T").CombinedOutput()
		return strings.HasPrefix(string(out), "idle")
	})
	return s
}

const slurmConfiguration = `ClusterName=test
SlurmctldHost=@NODE@(127.0.0.1)
SlurmctldPort=@CONTROL@
SlurmdPort=@WORK@
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
`

// running returns the running tasks, as JOB_TASK.
func (s *slurm) running() []string {
	return strings.Fields(output(s.t, "squeue", "-h", "-r", "-t", "RUNNING", "-o", "%F_%K"))
}

// hurry lets requeued tasks start at once: Slurm would wait for two minutes.
func (s *slurm) hurry() {
	for _, task := range strings.Fields(output(s.t, "squeue", "-h", "-r", "-t", "PENDING", "-o", "%F_%K")) {
		_ = exec.Command("scontrol", "update", "JobId="+task, "StartTime=now").Run() // it may just have started
	}
}

// waiting returns the number of tasks that Slurm has not finished.
func (s *slurm) waiting() int {
	return len(strings.Fields(output(s.t, "squeue", "-h", "-r", "-o", "%i")))
}

// drain empties the node, makes it available again, and returns the number of tasks that were
// moved.
func (s *slurm) drain() (moved int) {
	output(s.t, "scontrol", "update", "NodeName="+s.node, "State=DRAIN", "Reason=test")
	for _, task := range s.running() {
		if exec.Command("scontrol", "requeue", task).Run() == nil { // else it has just ended
			moved++
		}
	}
	output(s.t, "scontrol", "update", "NodeName="+s.node, "State=RESUME")
	return moved
}

// TestSlurm gives Slurm an array of 8 tasks, two at a time, and removes them at random: by
// requeuing them, by draining their node, by killing them, by the warning before a time limit.
// All finish without intervention, and have the samples of one uninterrupted process, to the bit.
func TestSlurm(t *testing.T) {
	s := startSlurm(t)
	e := newEvictions(t)
	d := s.divide(e)
	output(t, d.program, "submit", "slurm", d.tasks, "--folder", d.array, "--cpus", "1", "--grace", "5", "--send")
	end := time.Now().Add(e.patience())
	for s.waiting() > 0 {
		if time.Now().After(end) {
			t.Fatalf("tasks do not end: %s\n%s", output(t, "squeue", "-r"), output(t, d.program, "status", d.array))
		}
		time.Sleep(time.Duration(e.random(1500)) * time.Millisecond)
		s.hurry()
		tasks := s.running()
		if len(tasks) == 0 || e.total() >= e.least+few {
			continue
		}
		task := tasks[e.random(len(tasks))]
		var err error
		how := []string{"requeued", "warned", "killed", "drained"}[e.random(4)]
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
			e.survived[how] += s.drain()
			continue
		}
		if err == nil { // else the task had just ended
			e.survived[how]++
		}
	}
	d.compare(e)
}
