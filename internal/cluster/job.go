package cluster

import (
	"regexp"
	"strings"

	"github.com/pkg/errors"
)

// Job describes tasks and their resources for a scheduler.
type Job struct {
	Name     string   // lower-case letters, digits and "-"
	Tasks    int      // numbered from 0
	Parallel int      // maximum number of tasks at a time; 0 is no limit
	Command  []string // the same for all tasks; it reads its task number from the environment, see Index
	CPUs     int      // per task
	GPUs     int      // per task
	Memory   int      // MiB of each task; 0 leaves that to the scheduler
	Grace    int      // seconds between the signal to stop and the end
	Slurm    SlurmOptions
	Pods     PodOptions
}

// interruptedExitCodes are the exit codes of pollen after SIGINT, SIGUSR1, SIGUSR2 and SIGTERM: 128
// plus the signal's number. The run is saved, and continues when the task is restarted.
var interruptedExitCodes = []int{130, 138, 140, 143}

// exitUSR1 is the exit code after SIGUSR1, which Slurm sends to the batch script before the time
// limit.
const exitUSR1 = 138

var jobName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

func (j Job) validate() error {
	switch {
	case !jobName.MatchString(j.Name):
		return errors.Errorf("cluster: Name must be at most 63 lower-case letters, digits and -, neither first nor last a -, got %q", j.Name)
	case j.Tasks < 1 || j.Tasks > maxTasks:
		return errors.Errorf("cluster: Tasks must be 1 to %d, got %d", maxTasks, j.Tasks)
	case j.Parallel < 0 || j.GPUs < 0 || j.Memory < 0:
		return errors.Errorf("cluster: Parallel, GPUs and Memory must not be negative, got %d, %d, %d", j.Parallel, j.GPUs, j.Memory)
	case j.CPUs < 1:
		return errors.Errorf("cluster: CPUs must be at least 1, got %d", j.CPUs)
	case j.Grace < 1:
		return errors.Errorf("cluster: Grace must be at least 1 s, got %d", j.Grace)
	case len(j.Command) == 0:
		return errors.New("cluster: Command must not be empty")
	}
	return nil
}

// quote quotes a word for a shell.
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
