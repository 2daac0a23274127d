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

// readGrid reads the grid of a file: names of settings, each with a list of values.
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
		return errors.Errorf("grid must have names of settings, each with a list of values, got %v", value)
	}
	return nil
}

// ForTask turns the settings into a task's settings, and returns the task's directory below dir.
func (s *Settings) ForTask(number, dir string) (string, error) {
	if dir == "" {
		return "", Usagef("pollen: --task needs --folder, the parent of all tasks' directories")
	}
	var index int
	var err error
	if number == "auto" {
		index, err = cluster.Index(os.LookupEnv)
	} else if index, err = strconv.Atoi(number); err != nil {
		err = errors.Errorf("pollen: --task must be a number or auto, got %q", number)
	}
	if err != nil {
		return "", AsUsageError(err)
	}
	task, err := s.Plan.Task(index)
	if err != nil {
		return "", AsUsageError(err)
	}
	for _, setting := range task.Settings {
		if err := setField(s.flags, s.flags, setting.Name, setting.Value); err != nil {
			return "", AsUsageError(errors.WithMessage(err, "pollen: grid"))
		}
	}
	return filepath.Join(dir, filepath.FromSlash(task.Dir)), AsUsageError(s.assignChains(task))
}

// assignChains assigns a part its chains. The default is one chain for each part.
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
