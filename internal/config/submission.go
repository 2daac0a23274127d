package config

import (
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pkg/errors"
	"github.com/spf13/pflag"

	"github.com/pollen-ml/pollen/internal/cluster"
)

// Submission is a job for a cluster: the tasks of a configuration.
type Submission struct {
	cluster.Job
	Config  string // its file
	Dir     string // of all tasks' runs
	Program string // path of pollen on the nodes of Slurm; "" is this program
}

// Check tries every task's settings, so that none fails on the cluster for a mistake in the file.
func (s *Submission) Check() error {
	if s.Dir == "" {
		return Usagef("pollen: submit wants --folder")
	}
	if s.Name == "" {
		s.Name = jobName(strings.TrimSuffix(filepath.Base(s.Config), filepath.Ext(s.Config)))
	}
	s.Tasks = 1
	for number := 0; number < s.Tasks; number++ {
		one, err := Layered(pflag.NewFlagSet("", pflag.ContinueOnError), s.Config)
		if err != nil {
			return err
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

// jobName makes a name that both kinds of clusters take of a file's, my_run.v2 being my-run-v2.
func jobName(file string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(file))
	return strings.Trim(name[:min(63, len(name))], "-")
}

// fit is what a task runs: its number comes from the cluster.
func (s *Submission) fit(program []string, config string) []string {
	command := append(program, "fit", "--config", config, "--folder", s.Dir, "--task", "auto")
	if s.GPUs == 0 {
		command = append(command, "--device", "cpu", "--threads", strconv.Itoa(s.CPUs))
	}
	return command
}

// ForSlurm is the batch script, and the program that takes it on its standard input.
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
			return "", nil, Usagef("pollen: submit: this program is one of go run, which is gone when a task starts: go build ./cmd/pollen, or say which by --command")
		}
	}
	s.Slurm.Logs = filepath.Join(s.Dir, "logs")
	s.Command = s.fit([]string{program}, s.Config)
	text, err = s.Job.ForSlurm()
	return text, []string{"sbatch"}, err
}

// ForKubernetes is the manifest, with the configuration and a network file that it names, and the program
// that takes it.
func (s *Submission) ForKubernetes() (text string, tool []string, err error) {
	switch {
	case s.Pods.Image == "" || s.Pods.Claim == "":
		return "", nil, Usagef("pollen: submit kubernetes wants --image, with pollen, and --claim, the volume that keeps the runs")
	case !strings.HasPrefix(path.Clean(s.Dir)+"/", path.Clean(s.Pods.Mount)+"/"):
		return "", nil, Usagef("pollen: submit: folder %s is not in the volume, which pods see at %s: it would be gone with them", s.Dir, s.Pods.Mount)
	}
	one, err := Layered(pflag.NewFlagSet("", pflag.ContinueOnError), s.Config)
	if err != nil {
		return "", nil, err
	}
	s.Pods.Files = map[string]string{}
	files := []string{s.Config}
	if network := one.Text["model"]; strings.HasSuffix(network, ".yaml") || strings.HasSuffix(network, ".yml") {
		if filepath.Base(network) != network {
			return "", nil, Usagef("pollen: model: %s: for pods, start submit beside the file and name it without a folder", network)
		}
		files = append(files, network)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return "", nil, errors.Wrap(err, "pollen: submit")
		}
		s.Pods.Files[filepath.Base(file)] = string(content)
	}
	s.Command = s.fit(nil, filepath.Base(s.Config))
	text, err = s.Job.ForKubernetes()
	return text, []string{"kubectl", "apply", "-f", "-"}, err
}
