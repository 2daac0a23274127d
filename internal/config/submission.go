package config

import (
	"cmp"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pkg/errors"
	"github.com/spf13/pflag"

	"github.com/pollen-ml/pollen/internal/cluster"
	"github.com/pollen-ml/pollen/internal/file"
)

// Submission is a cluster job with the tasks of a configuration.
type Submission struct {
	cluster.Job
	Config  string // configuration file
	Dir     string // directory of all tasks' runs
	Program string // path of pollen on Slurm's nodes; "" for this program
}

// Check checks every task's settings, so that no task fails on the cluster because of the file.
func (s *Submission) Check() error {
	s.Name = cmp.Or(s.Name, jobName(strings.TrimSuffix(filepath.Base(s.Config), filepath.Ext(s.Config))))
	s.Tasks = 1
	for number := 0; number < s.Tasks; number++ {
		one, err := Layered(pflag.NewFlagSet("", pflag.ContinueOnError), s.Config)
		if err != nil {
			return err
		}
		if s.Dir == "" {
			return Usagef("pollen: submit needs --folder, the directory of the runs of all tasks")
		}
		s.Tasks = one.Plan.Tasks()
		if _, err = one.ForTask(strconv.Itoa(number), s.Dir); err == nil {
			_, err = one.Spec()
		}
		if err != nil {
			return errors.WithMessagef(err, "task %d", number)
		}
	}
	return nil
}

// jobName turns a file name into a job name that both schedulers accept: my_run.v2 into my-run-v2.
func jobName(file string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(file))
	return strings.Trim(name[:min(63, len(name))], "-")
}

// fit returns the command of a task, which gets its number from the cluster.
func (s *Submission) fit(program []string, config string) []string {
	command := append(program, "fit", "--config", config, "--folder", s.Dir, "--task", "auto")
	if s.GPUs == 0 {
		command = append(command, "--device", "cpu", "--threads", strconv.Itoa(s.CPUs))
	}
	return command
}

// ForSlurm returns the batch script, and the command that reads it from standard input.
func (s *Submission) ForSlurm() (text string, tool []string, err error) {
	program := s.Program
	for _, path := range []*string{&s.Config, &s.Dir, &s.Slurm.Dir} {
		if *path, err = filepath.Abs(*path); err != nil {
			return "", nil, errors.Wrap(err, "pollen: submit")
		}
	}
	if program == "" {
		if program, err = os.Executable(); err != nil {
			return "", nil, errors.Wrap(err, "pollen: submit")
		}
		if strings.Contains(program, "go-build") {
			return "", nil, Usagef("pollen: submit: go run's program is gone when a task starts: use go build ./cmd/pollen, or --command")
		}
	}
	s.Slurm.Logs = filepath.Join(s.Dir, "logs")
	s.Command = s.fit([]string{program}, s.Config)
	text, err = s.Job.ForSlurm()
	return text, []string{"sbatch"}, err
}

// ForKubernetes returns the manifest, with the configuration and the network files that it names,
// and the command that reads it from standard input.
func (s *Submission) ForKubernetes() (text string, tool []string, err error) {
	switch {
	case s.Pods.Image == "" || s.Pods.Claim == "":
		return "", nil, Usagef("pollen: submit kubernetes needs --image, with pollen, and --claim, the volume with the runs")
	case !strings.HasPrefix(path.Clean(s.Dir)+"/", path.Clean(s.Pods.Mount)+"/"):
		return "", nil, Usagef("pollen: submit: --folder must be inside the volume, mounted at %[2]s, got %[1]s", s.Dir, s.Pods.Mount)
	}
	one, err := Layered(pflag.NewFlagSet("", pflag.ContinueOnError), s.Config)
	if err != nil {
		return "", nil, err
	}
	s.Pods.Files = map[string]string{}
	files := []string{s.Config}
	for _, network := range one.networkFiles() {
		if filepath.Base(network) != network {
			return "", nil, Usagef("pollen: submit: model must be a file in the current directory for Kubernetes, got %s", network)
		}
		files = append(files, network)
	}
	for _, name := range files {
		content, err := file.Read(name, maxFile)
		if err != nil {
			return "", nil, errors.Wrap(err, "pollen: submit")
		}
		s.Pods.Files[filepath.Base(name)] = string(content)
	}
	s.Command = s.fit(nil, filepath.Base(s.Config))
	text, err = s.Job.ForKubernetes()
	return text, []string{"kubectl", "apply", "-f", "-"}, err
}
