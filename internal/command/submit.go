package command

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pollen-ml/pollen/internal/config"
)

// submission are the flags of submit.
type submitFlags struct {
	config.Submission
	send bool
}

func submitCommand(c *console) *cobra.Command {
	var s submitFlags
	command := &cobra.Command{
		Use: "submit slurm|kubernetes CONFIG", Short: "give the tasks of a configuration to a cluster",
		Long: "Prints what a cluster is to be told, and with --send tells it. CONFIG is fit's, with two more keys: parts, how many tasks\n" +
			"share the chains, and grid, settings with lists of values, each combination of which is a run. Each task can be evicted\n" +
			"and started again; `pollen status FOLDER` watches them, `pollen gather` makes one run of the parts. docs/clusters.md says more.",
		Example: `  pollen submit slurm flowers.yaml --folder /scratch/flowers --time 4:00:00
  pollen submit slurm flowers.yaml --folder /scratch/flowers --send
  pollen submit kubernetes flowers.yaml --folder /runs/flowers --claim runs --image registry/pollen:1`,
	}
	f := command.Flags()
	s.bind(f)
	command.RunE = func(command *cobra.Command, arguments []string) error {
		if len(arguments) != 2 {
			return usage("pollen: submit wants slurm or kubernetes, and a configuration")
		}
		s.Config = arguments[1]
		return s.run(command.Context(), f, arguments[0], c)
	}
	return command
}

// only are the flags that one kind of cluster has.
var clusterFlags = map[string][]string{
	"slurm":      {"time", "partition", "option", "command"},
	"kubernetes": {"image", "namespace", "claim", "mount", "retries"},
}

func (s *submitFlags) bind(f *pflag.FlagSet) {
	f.StringVar(&s.Dir, "folder", "", "folder of all tasks' runs, which all machines see")
	f.StringVar(&s.Name, "name", "", "name of the job (default: the configuration's)")
	f.IntVar(&s.CPUs, "cpus", 2, "processors of each task")
	f.IntVar(&s.GPUs, "gpus", 0, "GPUs of each task")
	f.IntVar(&s.Memory, "memory", 0, "MiB of each task (default: the cluster's)")
	f.IntVar(&s.Parallel, "parallel", 0, "tasks at a time (default: as many as there is room for)")
	f.IntVar(&s.Grace, "grace", 120, "seconds between the warning and the end")
	f.StringVar(&s.Slurm.Time, "time", "", "slurm: limit of each start, as 4:00:00 (default: the partition's)")
	f.StringVar(&s.Slurm.Partition, "partition", "", "slurm: partition")
	f.StringArrayVar(&s.Slurm.Extra, "option", nil, "slurm: further option for sbatch, as --account=me; may be repeated")
	f.StringVar(&s.Program, "command", "", "slurm: the path of pollen on the nodes (default: this program)")
	f.StringVar(&s.Pods.Image, "image", "", "kubernetes: image with pollen as its entry point")
	f.StringVar(&s.Pods.Namespace, "namespace", "", "kubernetes: namespace")
	f.StringVar(&s.Pods.Claim, "claim", "", "kubernetes: persistent volume claim with the data and the runs")
	f.StringVar(&s.Pods.Mount, "mount", "/runs", "kubernetes: where the volume is in the containers")
	f.IntVar(&s.Pods.Retries, "retries", 3, "kubernetes: of a task that fails; evictions do not count")
	f.BoolVar(&s.send, "send", false, "give it to sbatch or kubectl, after it is printed")
}

func (s *submitFlags) run(ctx context.Context, given *pflag.FlagSet, kind string, c *console) error {
	if clusterFlags[kind] == nil {
		return usage("pollen: no cluster %q; there are slurm, kubernetes", kind)
	}
	for other, names := range clusterFlags {
		for _, name := range names {
			if other != kind && given.Changed(name) {
				return usage("pollen: --%s applies to %s, not to %s", name, other, kind)
			}
		}
	}
	if err := s.Check(); err != nil {
		return err
	}
	prepare := s.ForSlurm
	if kind == "kubernetes" {
		prepare = s.ForKubernetes
	}
	text, tool, err := prepare()
	if err != nil {
		return config.AsUsageError(err)
	}
	fmt.Fprint(c.out, text)
	c.remark("%s", counted(s.Tasks, "task"))
	if !s.send {
		if kind == "slurm" {
			c.remark("The tasks' logs want the folder %s, which --send makes.", s.Slurm.Logs)
		}
		c.remark("Nothing is submitted yet: add --send, or pipe this into: %s", strings.Join(tool, " "))
		return nil
	}
	if kind == "slurm" {
		if err := os.MkdirAll(s.Slurm.Logs, 0o755); err != nil {
			return errors.Wrap(err, "pollen: submit")
		}
	}
	command := exec.CommandContext(ctx, tool[0], tool[1:]...)
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(text), c.err, c.err
	if err := command.Run(); err != nil {
		return errors.Wrapf(err, "pollen: %s", tool[0])
	}
	c.remark("See how they do, where that folder is seen: pollen status %s", s.Dir)
	return nil
}
