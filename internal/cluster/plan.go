package cluster

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/pkg/errors"
)

// Plan is how a run is divided into tasks.
type Plan struct {
	Grid  []Axis // settings whose values are all combined; none for one cell
	Parts int    // tasks that share the chains of a cell; 0 is 1
}

// Axis is a setting, by its name in configurations, with the values that it takes.
type Axis struct {
	Setting string
	Values  []string
}

// Task is one of a plan's tasks.
type Task struct {
	Settings []Setting // of its cell, in the order of the axes
	Part     int       // from 0
	Parts    int
	Dir      string // of its run below the folder of all, with slashes; "." if there is one task
}

// Setting is a value of a setting.
type Setting struct{ Name, Value string }

// maxTasks bounds a plan: schedulers refuse larger arrays, and so do file systems.
const maxTasks = 100000

// Validate refuses plans without tasks, and values or settings that are there twice.
func (p Plan) Validate() error {
	if p.Parts < 0 {
		return errors.Errorf("cluster: parts is %d, wants at least 1", p.Parts)
	}
	tasks := max(1, p.Parts)
	known := map[string]bool{}
	for _, axis := range p.Grid {
		if known[axis.Setting] {
			return errors.Errorf("cluster: grid: %s is there twice", axis.Setting)
		}
		known[axis.Setting] = true
		if len(axis.Values) == 0 {
			return errors.Errorf("cluster: grid: %s has no values", axis.Setting)
		}
		dirs := map[string]bool{}
		for _, value := range axis.Values {
			if dir := dirOf(value); dirs[dir] {
				return errors.Errorf("cluster: grid: two values of %s have the folder %s", axis.Setting, dir)
			} else {
				dirs[dir] = true
			}
		}
		if tasks *= len(axis.Values); tasks > maxTasks {
			return errors.Errorf("cluster: more than %d tasks", maxTasks)
		}
	}
	return nil
}

// Tasks is how many tasks there are; the plan must be valid.
func (p Plan) Tasks() int {
	tasks := max(1, p.Parts)
	for _, axis := range p.Grid {
		tasks *= len(axis.Values)
	}
	return tasks
}

// Task is the task of a number from 0 on. The parts of a cell follow each other, then the values of
// the last axis.
func (p Plan) Task(number int) (Task, error) {
	if err := p.Validate(); err != nil {
		return Task{}, err
	}
	if number < 0 || number >= p.Tasks() {
		return Task{}, errors.Errorf("cluster: task %d of %d, wants 0 to %d", number, p.Tasks(), p.Tasks()-1)
	}
	t := Task{Parts: max(1, p.Parts)}
	t.Part = number % t.Parts
	cell := number / t.Parts
	t.Settings = make([]Setting, len(p.Grid))
	for i := len(p.Grid) - 1; i >= 0; i-- {
		values := p.Grid[i].Values
		t.Settings[i] = Setting{p.Grid[i].Setting, values[cell%len(values)]}
		cell /= len(values)
	}
	var names []string
	for _, s := range t.Settings {
		names = append(names, s.Name+"="+dirOf(s.Value))
	}
	t.Dir = strings.Join(names, ",")
	if t.Parts > 1 {
		t.Dir = path.Join(t.Dir, fmt.Sprintf("part-%0*d", len(strconv.Itoa(t.Parts-1)), t.Part))
	}
	if t.Dir == "" {
		t.Dir = "."
	}
	return t, nil
}

// dirOf is a value as a part of a folder's name on every system.
func dirOf(value string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("=.-_", r) {
			return r
		}
		return '-'
	}, value)
}

// Chains divides the chains of a cell: the first of the part's, and how many it has.
func (t Task) Chains(all int) (first, count int, err error) {
	if all%t.Parts != 0 {
		return 0, 0, errors.Errorf("cluster: %d chains in %d parts, wants as many in each", all, t.Parts)
	}
	count = all / t.Parts
	return t.Part * count, count, nil
}

// indexVariables are where schedulers put the number of a task.
var indexVariables = []string{"SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX"}

// Index is the number of the task that a scheduler started this process for, from the environment.
func Index(lookup func(string) (string, bool)) (int, error) {
	for _, name := range indexVariables {
		text, given := lookup(name)
		if !given {
			continue
		}
		number, err := strconv.Atoi(text)
		return number, errors.Wrapf(err, "cluster: %s", name)
	}
	return 0, errors.Errorf("cluster: no task number: there is none of %s in the environment", strings.Join(indexVariables, ", "))
}
