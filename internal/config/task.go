package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/goccy/go-yaml"
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/cluster"
)

// readGrid reads a file's grid: names of settings, each with a list of values.
func (s *Settings) readGrid(value any) error {
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
		s.Plan.Grid = append(s.Plan.Grid, axis)
	}
	if !ok {
		return errors.Errorf("grid is %v, wants names of settings, each with a list of values", value)
	}
	return nil
}

// ForTask turns the settings into those of a task, and returns its folder.
func (s *Settings) ForTask(number, dir string) (string, error) {
	if dir == "" {
		return "", Usagef("pollen: --task wants --folder, below which all tasks have theirs")
	}
	var index int
	var err error
	if number == "auto" {
		index, err = cluster.Index(os.LookupEnv)
	} else if index, err = strconv.Atoi(number); err != nil {
		err = errors.Errorf("pollen: task is %q, wants a number or auto", number)
	}
	if err != nil {
		return "", AsUsageError(err)
	}
	task, err := s.Plan.Task(index)
	if err != nil {
		return "", AsUsageError(err)
	}
	for _, setting := range task.Settings {
		if err := setField(s.flags, setting.Name, setting.Value); err != nil {
			return "", AsUsageError(errors.WithMessage(err, "pollen: grid"))
		}
	}
	return filepath.Join(dir, filepath.FromSlash(task.Dir)), AsUsageError(s.assignChains(task))
}

// divide gives a part its chains: as many as there are parts unless there are more.
func (s *Settings) assignChains(task cluster.Task) error {
	if task.Parts == 1 {
		return nil
	}
	all, base := task.Parts, 0
	for name, value := range map[string]*int{"chains": &all, "first-chain": &base} {
		if text, given := s.Text[name]; given {
			var err error
			if *value, err = strconv.Atoi(text); err != nil {
				return errors.Wrapf(err, "pollen: %s", name)
			}
		}
	}
	first, count, err := task.Chains(all)
	s.Text["chains"], s.Text["first-chain"] = fmt.Sprint(count), fmt.Sprint(base+first)
	return err
}
