package command

import (
	"context"
	"os"

	"github.com/pkg/errors"
	"github.com/spf13/pflag"

	"github.com/pollen-ml/pollen"
	"github.com/pollen-ml/pollen/internal/config"
)

// taskFlags make a fit one of many, and one that can be started again.
type taskFlags struct {
	number  string
	orStart bool
}

func (t *taskFlags) bind(f *pflag.FlagSet) {
	f.StringVar(&t.number, "task", "", "run this one of the tasks that parts and the file's grid make, in its own folder below --folder:\n"+
		"a number from 0 on, or auto for that of the Slurm array or the Kubernetes Job; started again, it goes on")
	f.BoolVar(&t.orStart, "resume-or-start", false, "go on with the run in --folder if there is one; finished, it is left as it is")
}

// resumeOrStart starts a run, or goes on with the one that is in the folder, which must be the same.
func resumeOrStart(ctx context.Context, s *config.Settings, dir string, more []pollen.Option, c *console) error {
	if dir == "" {
		return usage("pollen: --resume-or-start wants --folder")
	}
	run, err := pollen.Open(dir)
	if errors.As(err, new(*pollen.NotARunError)) {
		err = runFit(ctx, s, dir, c)
		if _, other := pollen.Open(dir); other != nil || !errors.Is(err, os.ErrExist) {
			return err
		}
		return resumeOrStart(ctx, s, dir, more, c) // another process of this task has begun the run meanwhile
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
		return usage("pollen: %s holds a run with other settings: its %s is %q, not %q", dir, name, there, here)
	}
	p, err := run.Progress()
	if err != nil {
		return err
	}
	if p.State == pollen.Finished {
		c.remark("%s: all is done, %s", dir, counted(p.Samples, "sample"))
		return nil
	}
	return resumeRun(ctx, m, deviceFlags{s.Device}, s.Data.Dir, dir, more, c)
}
