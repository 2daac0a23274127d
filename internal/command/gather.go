package command

import (
	"context"
	"os"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/internal/cluster"
	"github.com/pollen-ml/pollen/internal/config"
)

func gatherCommand(c *console) *cobra.Command {
	var dir string
	var copied bool
	var device deviceFlags
	var dataDir string
	command := &cobra.Command{
		Use: "gather DIR...", Short: "Combine the chains of several runs into one run",
		Long: "Combines the runs in or below the directories into one run, and scores it. They must sample the same posterior with\n" +
			"different chains. The new run refers to their samples; other commands use it like any run. An unfinished run contributes\n" +
			"the samples that it has at the time of use.",
		Example: "  pollen gather /scratch/flowers --folder runs/flowers\n  pollen gather a b c --copy",
		Args:    requireRuns,
	}
	f := command.Flags()
	f.StringVar(&dir, "folder", "", "directory of the new run, new or empty (default runs/gather-1, runs/gather-2, ...)")
	f.BoolVar(&copied, "copy", false, "copy the present samples instead of referring to them")
	config.BindDataDir(f, &dataDir)
	device.bind(f)
	command.RunE = func(command *cobra.Command, dirs []string) error {
		dir, err := newRunDir(dir, "gather")
		if err != nil {
			return err
		}
		return runGather(command.Context(), dirs, dir, copied, device, dataDir, c)
	}
	return command
}

func runGather(ctx context.Context, dirs []string, dir string, copied bool, device deviceFlags, dataDir string, c *console) error {
	var parts []string
	unfinished := 0
	err := cluster.Walk(dirs, func(dir string, _ *bayes.Run, p bayes.Progress, err error) error {
		if err != nil {
			return errors.WithMessage(err, dir)
		}
		parts = append(parts, dir)
		if p.State != bayes.Finished {
			unfinished++
			c.remark("%s is %s, %d of %d steps, %d of %s", dir, p.State, p.Made, p.Steps, p.Samples, counted(p.Expected, "sample"))
			if p.State == bayes.Failed {
				c.remark("  %s", p.Error)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	opened, err := device.open(c)
	if err != nil {
		return err
	}
	defer opened.Close()
	// The data are opened first, because nothing would remain to be done with a run without them.
	first, err := bayes.ReadManifest(parts[0])
	if err != nil {
		return err
	}
	data := config.DataOf(*first).In(dataDir)
	splits, err := openData(ctx, data, c)
	if err != nil {
		return err
	}
	gather := bayes.Gather
	if copied {
		gather = bayes.GatherCopies
	}
	run, err := gather(dir, parts, bayes.WithDevice(opened), bayes.WithObserver(c.observer("gather")), keepFeatures())
	if err != nil {
		return err
	}
	mixing, err := calibrateGathered(ctx, run, data, splits, unfinished > 0 && !copied, len(parts), c)
	if err != nil {
		c.endProgress()
		c.remark("%s is removed, because it is not complete", dir)
		if removing := os.RemoveAll(dir); removing != nil {
			c.remark("it could not be removed: %v", removing)
		}
		return err
	}
	return finishFit(ctx, run, nil, finished{name: bayes.MethodName(run.Manifest().Spec.Method), data: splits, mixing: mixing}, c)
}

// calibrateGathered remarks on a new gathered run of a number of parts, and calibrates it unless
// the parts still grow. It returns how the chains mix.
func calibrateGathered(ctx context.Context, run *bayes.Run, data config.Data, splits *datasets.Splits, growing bool, parts int,
	c *console) (*diagnostics.Mixing, error) {
	dir, m := run.Dir(), run.Manifest()
	trained := remarkHeldOut(dir, run, data, splits, c)
	c.remark("%s: %s of %s", dir, counted(m.Spec.Chains, "chain"), counted(parts, "run"))
	mixing, err := run.Mixing(ctx, splits)
	c.endProgress()
	if err != nil {
		return nil, err
	}
	switch {
	case splits.Validation == nil:
	case growing:
		c.remark("%s is not calibrated, since its parts are unfinished: gather again when they are finished, or use --copy", dir)
	default:
		if err := run.FitDetector(ctx, splits.Train); err != nil {
			return nil, err
		}
		notes := map[string]string{}
		noteTrained(notes, trained, c) // the data have changed
		return mixing, run.With(bayes.WithNotes(notes)).Calibrate(ctx, splits.Validation)
	}
	return mixing, nil
}
