package command

import (
	"context"
	"os"

	"github.com/pkg/errors"
	"github.com/spf13/pflag"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/internal/config"
)

// taskFlags select one of the tasks of a configuration, and make a fit restartable.
type taskFlags struct {
	number  string
	orStart bool
}

func (t *taskFlags) bind(f *pflag.FlagSet) {
	f.StringVar(&t.number, "task", "", "run one of the tasks defined by parts and grid, in its own directory below --folder: a number\n"+
		"from 0, or auto for the index of the Slurm array or Kubernetes Job; implies --resume-or-start")
	f.BoolVar(&t.orStart, "resume-or-start", false, "continue the run in --folder if there is one, else start it")
}

// resumeOrStart starts a run in dir, or continues the run there, which must have the same settings.
func resumeOrStart(ctx context.Context, s *config.Settings, dir string, more []bayes.Option, c *console) error {
	if dir == "" {
		return usage("pollen: --resume-or-start needs --folder")
	}
	run, err := bayes.Open(dir)
	if errors.As(err, new(*bayes.NotARunError)) {
		err = runFit(ctx, s, dir, c)
		if _, other := bayes.Open(dir); other != nil || !errors.Is(err, os.ErrExist) {
			return err
		}
		return resumeOrStart(ctx, s, dir, more, c) // another process of this task has started the run meanwhile
	}
	if err != nil {
		return err
	}
	spec, err := s.Spec()
	if err != nil {
		return err
	}
	m := run.Manifest()
	if name, there, here := m.Difference(spec); name != "" {
		return usage("pollen: %s has a run with other settings: %s must be %q as there, got %q; choose another --folder for a new run", dir, name, there, here)
	}
	p, err := run.Progress()
	if err != nil {
		return err
	}
	if p.State == bayes.Finished {
		c.remark("%s: finished, %s", dir, counted(p.Samples, "sample"))
		return nil
	}
	return resumeRun(ctx, m, deviceFlags{s.Device}, s.Data.Dir, dir, more, c)
}
