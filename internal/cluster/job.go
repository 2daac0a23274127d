package cluster

import (
	"regexp"
	"strings"

	"github.com/pkg/errors"
)

// Job is what a scheduler is asked for: the tasks, and what each of them needs.
type Job struct {
	Name     string   // of letters, digits and "-"
	Tasks    int      // numbered from 0
	Parallel int      // tasks at a time; 0 leaves that to the scheduler
	Command  []string // the same for all: it takes the number of its task from the environment, see Index
	CPUs     int      // of each task
	GPUs     int      // of each task
	Memory   int      // MiB of each task; 0 leaves that to the scheduler
	Grace    int      // seconds between the warning and the end
	Slurm    SlurmOptions
	Pods     PodOptions
}

// InterruptedExitCodes are the exit codes of pollen when it was told to stop: it kept all, and goes on when
// the task is started again. They are 128 and the number of SIGINT, SIGUSR1, SIGUSR2 and SIGTERM.
var InterruptedExitCodes = []int{130, 138, 140, 143}

// warned is the exit code after SIGUSR1, which the script below is sent before its time is over.
const exitUSR1 = 138

var jobName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

func (j Job) validate() error {
	switch {
	case !jobName.MatchString(j.Name):
		return errors.Errorf("cluster: name %q, wants at most 63 lower-case letters, digits and -, neither first nor last a -", j.Name)
	case j.Tasks < 1 || j.Tasks > maxTasks:
		return errors.Errorf("cluster: %d tasks, wants 1 to %d", j.Tasks, maxTasks)
	case j.Parallel < 0 || j.GPUs < 0 || j.Memory < 0:
		return errors.Errorf("cluster: parallel %d, gpus %d, memory %d, wants none below 0", j.Parallel, j.GPUs, j.Memory)
	case j.CPUs < 1:
		return errors.Errorf("cluster: %d cpus, wants at least 1", j.CPUs)
	case j.Grace < 1:
		return errors.Errorf("cluster: grace of %d s, wants at least 1", j.Grace)
	case len(j.Command) == 0:
		return errors.New("cluster: no command")
	}
	return nil
}

// quote makes a word of a shell.
func quote(word string) string {
	if word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-=:,+@%") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func quoted(words []string) string {
	var all []string
	for _, word := range words {
		all = append(all, quote(word))
	}
	return strings.Join(all, " ")
}
