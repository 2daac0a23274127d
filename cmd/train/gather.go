package main

import (
	"context"
	"fmt"
	"time"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"

	"github.com/pollen-ml/pollen"
	"github.com/pollen-ml/pollen/cluster"
	"github.com/pollen-ml/pollen/internal/config"
	"github.com/pollen-ml/pollen/report"
)

func gatherCommand(c *console) *cobra.Command {
	var folder string
	var copied bool
	var device deviceFlags
	var dataFolder string
	command := &cobra.Command{
		Use: "gather FOLDER...", Short: "make one run of the chains of many",
		Long: "Makes one run of those at or below the folders, which must sample the same posterior by chains of their own, and scores\n" +
			"it. The new folder names theirs; all other commands take it as any run. Runs that are not finished take part with the\n" +
			"samples that they have when it is used.",
		Example: "  train gather /scratch/flowers --folder runs/flowers\n  train gather a b c --copy",
		Args:    wantRuns,
	}
	f := command.Flags()
	f.StringVar(&folder, "folder", "", "folder of the new run, new or empty (default runs/gather-1, -2, ...)")
	f.BoolVar(&copied, "copy", false, "copy the samples that there are now into it")
	config.BindDataFolder(f, &dataFolder)
	device.bind(f)
	command.RunE = func(command *cobra.Command, folders []string) error {
		folder, err := freshFolder(folder, "gather")
		if err != nil {
			return err
		}
		return runGather(command.Context(), folders, folder, copied, device, dataFolder, c)
	}
	return command
}

func runGather(ctx context.Context, folders []string, folder string, copied bool, device deviceFlags, dataFolder string, c *console) error {
	var parts []string
	unfinished := 0
	err := cluster.Survey(folders, func(folder string, _ *pollen.Run, p pollen.Progress, err error) error {
		if err != nil {
			return errors.WithMessage(err, folder)
		}
		parts = append(parts, folder)
		if p.State != pollen.Finished {
			unfinished++
			c.remark("%s is %s, %d of %d steps, %d of %s", folder, p.State, p.Made, p.Steps, p.Samples, counted(p.Expected, "sample"))
			if p.State == pollen.Failed {
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
	run, err := pollen.Gather(folder, parts, copied, pollen.WithDevice(opened), pollen.WithObserver(c.observer("gather")))
	if err != nil {
		return err
	}
	m := run.Manifest()
	data := config.DataOf(m).In(dataFolder)
	splits, err := openData(ctx, data, c)
	if err != nil {
		return err
	}
	c.remark("%s: %s of %s", folder, counted(m.Spec.Chains, "chain"), counted(len(parts), "run"))
	mixing, err := run.Mixing(ctx, splits)
	c.endProgress()
	if err != nil {
		return err
	}
	if mixing != nil {
		c.remark("predictions of %d held-out images, all chains: split R-hat %s, effective samples %s, in the tails %s", mixing.Images,
			report.OrDash("%.3f", float64(mixing.RHat)), report.OrDash("%.0f", float64(mixing.BulkESS)), report.OrDash("%.0f", float64(mixing.TailESS)))
	}
	switch {
	case splits.Validation == nil:
	case unfinished > 0 && !copied:
		c.remark("%s is not calibrated, since its parts still grow: gather again when they are done, or --copy what there is", folder)
	default:
		if err := run.Calibrate(ctx, splits.Validation); err != nil {
			return err
		}
	}
	return finishFit(ctx, run, nil, pollen.MethodName(m.Spec.Method), splits, c)
}

func statusCommand(c *console) *cobra.Command {
	var every float64
	command := &cobra.Command{
		Use: "status FOLDER...", Short: "show how far runs are",
		Long: "Shows the runs at or below the folders: what runs, where, how far, how fast, when it is done, and what failed, and why. It\n" +
			"asks no one but the folders.",
		Example: "  train status /scratch/flowers\n  train status runs --watch 10",
		Args:    wantRuns,
	}
	command.Flags().Float64Var(&every, "watch", 0, "show it anew every so many seconds, until Ctrl-C")
	command.RunE = func(command *cobra.Command, folders []string) error {
		if every < 0 {
			return usage("train: watch is %v, wants a number of seconds", every)
		}
		for {
			if every > 0 && c.live {
				fmt.Fprint(c.out, "\x1b[H\x1b[2J") // home, and clear
			}
			table, summary, err := cluster.Status(folders, c.now())
			if table == nil {
				return err
			}
			if err := table.WriteText(c.out); err != nil {
				return err
			}
			if fmt.Fprintf(c.out, "\n%s\n", summary); every == 0 {
				return err
			}
			select {
			case <-command.Context().Done():
				return command.Context().Err()
			case <-time.After(time.Duration(every * float64(time.Second))):
			}
		}
	}
	return command
}
