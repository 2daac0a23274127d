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

// submitFlags are the flags of submit.
type submitFlags struct {
	config.Submission
	send bool
}

func submitCommand(c *console) *cobra.Command {
	var s submitFlags
	command := &cobra.Command{
		Use: "submit slurm|kubernetes CONFIG", Short: "Submit the tasks of a configuration to a cluster",
		Long: "Prints the batch script or manifest for the tasks of a configuration, and submits it with --send. CONFIG is a file for fit\n" +
			"--config with two more keys: parts, the number of tasks that share the chains of a run, and grid, lists of values of\n" +
			"settings, each combination of which is a run. Tasks can be evicted and restarted at any time. See `pollen status` for\n" +
			"their progress, `pollen gather` for combining parts, and docs/clusters.md.",
		Example: `  pollen submit slurm flowers.yaml --folder /scratch/flowers --time 4:00:00
  pollen submit slurm flowers.yaml --folder /scratch/flowers --send
  pollen submit kubernetes flowers.yaml --folder /runs/flowers --claim runs --image registry/pollen:1`,
	}
	f := command.Flags()
	s.bind(f)
	command.RunE = func(command *cobra.Command, arguments []string) error {
		if len(arguments) != 2 {
			return usage("pollen: submit needs two arguments: slurm or kubernetes, and a configuration")
		}
		s.Config = arguments[1]
		return s.run(command.Context(), f, arguments[0], c)
	}
	return command
}

// clusterFlags are the flags that apply to one kind of cluster only.
var clusterFlags = map[string][]string{
	"slurm":      {"time", "partition", "option", "command"},
	"kubernetes": {"image", "namespace", "claim", "mount", "user", "retries"},
}

func (s *submitFlags) bind(f *pflag.FlagSet) {
	f.StringVar(&s.Dir, "folder", "", "directory of the runs of all tasks, on a file system that all machines share")
	f.StringVar(&s.Name, "name", "", "job name (default: the configuration file's)")
	f.IntVar(&s.CPUs, "cpus", 2, "CPUs per task")
	f.IntVar(&s.GPUs, "gpus", 0, "GPUs per task")
	f.IntVar(&s.Memory, "memory", 0, "MiB per task (default: the cluster's)")
	f.IntVar(&s.Parallel, "parallel", 0, "maximum number of tasks at a time (default: no limit)")
	f.IntVar(&s.Grace, "grace", 120, "seconds between the signal to stop and the end")
	f.StringVar(&s.Slurm.Time, "time", "", "slurm: time limit of each start, such as 4:00:00 (default: the partition's)")
	f.StringVar(&s.Slurm.Partition, "partition", "", "slurm: partition")
	f.StringArrayVar(&s.Slurm.Extra, "option", nil, "slurm: another option for sbatch, such as --account=me; can be repeated")
	f.StringVar(&s.Program, "command", "", "slurm: path of pollen on the nodes (default: this program)")
	f.StringVar(&s.Pods.Image, "image", "", "kubernetes: container image with pollen as its entry point")
	f.StringVar(&s.Pods.Namespace, "namespace", "", "kubernetes: namespace (default: the context's)")
	f.StringVar(&s.Pods.Claim, "claim", "", "kubernetes: persistent volume claim with data and runs")
	f.StringVar(&s.Pods.Mount, "mount", "/runs", "kubernetes: mount path of the volume")
	f.StringVar(&s.Pods.User, "user", "65532:65532", "kubernetes: UID:GID of the processes, which must be able to write in the volume")
	f.IntVar(&s.Pods.Retries, "retries", 3, "kubernetes: retries of a task that fails; evictions do not count")
	f.BoolVar(&s.send, "send", false, "submit to sbatch or kubectl, after printing")
}

func (s *submitFlags) run(ctx context.Context, given *pflag.FlagSet, kind string, c *console) error {
	if clusterFlags[kind] == nil {
		return usage("pollen: unknown cluster %q; the clusters are slurm, kubernetes", kind)
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
			c.remark("The tasks' logs need the directory %s, which --send creates.", s.Slurm.Logs)
		}
		c.remark("Nothing is submitted: add --send, or pipe this into: %s", strings.Join(tool, " "))
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
	c.remark("Watch the tasks, on a machine that has the directory: pollen status %s", config.Quoted(s.Dir))
	return nil
}
