package command

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/internal/config"
)

// bindWithoutDamaged binds the flag that skips damaged samples.
func bindWithoutDamaged(f *pflag.FlagSet, without *bool) {
	f.BoolVar(without, "without-damaged", false, "skip and list samples that are damaged or missing, and a damaged calibration or detector")
}

// withoutDamagedIf returns the options for that flag.
func withoutDamagedIf(without bool) (options []bayes.Option) {
	if without {
		options = append(options, bayes.WithoutDamaged())
	}
	return options
}

// openRun opens a run, and warns as remarkUnfinished does.
func openRun(dir string, withoutDamaged bool, c *console, options ...bayes.Option) (*bayes.Run, error) {
	run, err := bayes.Open(dir, append(withoutDamagedIf(withoutDamaged), options...)...)
	if err != nil {
		return nil, err
	}
	return run, remarkUnfinished(run, c)
}

// remarkUnfinished warns of a run that failed or has not drawn all its samples.
func remarkUnfinished(run *bayes.Run, c *console) error {
	p, unreadable := run.Progress()
	if unreadable == nil && p.State == bayes.Failed { // an error may concern files that an average does not need
		c.remark("%s failed after %d of %d steps; averaging its %s of %d: %s",
			run.Dir(), p.Made, p.Steps, counted(p.Samples, "sample"), p.Expected, p.Error)
		return nil
	}
	finished, err := run.Finished()
	if err != nil || finished {
		return err
	}
	files, err := run.Samples()
	if err != nil {
		return err
	}
	expected, err := run.Expected()
	if left := len(run.LeftOut()); left > 0 && len(files)+left >= expected {
		c.remark("%s has %d of its %s: the others are missing", run.Dir(), len(files), counted(expected, "sample"))
		return err
	}
	next := ""
	if unreadable == nil && len(run.Manifest().Parts) == 0 && (p.State == bayes.Stopped || p.State == bayes.Interrupted) {
		next = fmt.Sprintf("; continue it with: %s fit --resume %s", program(os.Executable()), config.Quoted(run.Dir()))
	}
	c.remark("%s is not finished; it has %s so far%s", run.Dir(), counted(len(files), "sample"), next)
	return err
}
