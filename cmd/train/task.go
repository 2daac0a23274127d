package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/goccy/go-yaml"
	"github.com/pkg/errors"
	"github.com/spf13/pflag"

	"github.com/pollen-ml/pollen"
	"github.com/pollen-ml/pollen/cluster"
)

// taskFlags make a fit one of many, and one that can be started again.
type taskFlags struct {
	number string
	again  bool
}

func (t *taskFlags) bind(f *pflag.FlagSet) {
	f.StringVar(&t.number, "task", "", "run this one of the tasks that parts and the file's grid make, in its own folder below --folder:\n"+
		"a number from 0 on, or auto for that of the Slurm array or the Kubernetes Job; started again, it goes on")
	f.BoolVar(&t.again, "resume-or-start", false, "go on with the run in --folder if there is one; finished, it is left as it is")
}

// readGrid reads a file's grid: names of settings, each with a list of values.
func readGrid(value any) (grid []cluster.Axis, err error) {
	fields, ok := value.(yaml.MapSlice)
	for _, field := range fields {
		var values []any
		if values, ok = field.Value.([]any); !ok {
			break
		}
		axis := cluster.Axis{Setting: fmt.Sprint(field.Key)}
		for _, v := range values {
			axis.Values = append(axis.Values, fmt.Sprint(v))
		}
		grid = append(grid, axis)
	}
	if !ok {
		return nil, errors.Errorf("grid is %v, wants names of settings, each with a list of values", value)
	}
	return grid, nil
}

// take turns the settings into those of a task, and returns its folder.
func (s *settings) take(number, folder string) (string, error) {
	if folder == "" {
		return "", usage("train: --task wants --folder, below which all tasks have theirs")
	}
	var index int
	var err error
	if number == "auto" {
		index, err = cluster.Index(os.LookupEnv)
	} else if index, err = strconv.Atoi(number); err != nil {
		err = errors.Errorf("train: task is %q, wants a number or auto", number)
	}
	if err != nil {
		return "", wrapUsage(err)
	}
	task, err := s.plan.Task(index)
	if err != nil {
		return "", wrapUsage(err)
	}
	for _, setting := range task.Settings {
		if err := setField(s.flags, setting.Name, setting.Value); err != nil {
			return "", wrapUsage(errors.WithMessage(err, "train: grid"))
		}
	}
	return filepath.Join(folder, filepath.FromSlash(task.Folder)), wrapUsage(s.divide(task))
}

// divide gives a part its chains: as many as there are parts unless there are more.
func (s *settings) divide(task cluster.Task) error {
	if task.Parts == 1 {
		return nil
	}
	all, base := task.Parts, 0
	for name, value := range map[string]*int{"chains": &all, "first-chain": &base} {
		if text, given := s.text[name]; given {
			var err error
			if *value, err = strconv.Atoi(text); err != nil {
				return errors.Wrapf(err, "train: %s", name)
			}
		}
	}
	first, count, err := task.Chains(all)
	s.text["chains"], s.text["first-chain"] = fmt.Sprint(count), fmt.Sprint(base+first)
	return err
}

// fitAgain starts a run, or goes on with the one that is in the folder, which must be the same.
func fitAgain(ctx context.Context, s *settings, folder string, c *console) error {
	if folder == "" {
		return usage("train: --resume-or-start wants --folder")
	}
	run, err := pollen.Open(folder)
	if errors.As(err, new(*pollen.NotARun)) {
		return runFit(ctx, s, folder, c)
	}
	if err != nil {
		return err
	}
	spec, err := s.spec()
	if err != nil {
		return err
	}
	m := run.Manifest()
	if name, there, here := m.Spec.Difference(spec); name != "" {
		return usage("train: %s holds a run with other settings: its %s is %q, not %q", folder, name, there, here)
	}
	p, err := run.Progress()
	if err != nil {
		return err
	}
	if p.State == pollen.Finished {
		c.remark("%s: all is done, %s", folder, counted(p.Samples, "sample"))
		return nil
	}
	return goOn(ctx, m, s.device, s.data.folder, folder, c)
}
