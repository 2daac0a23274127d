package cluster

import (
	"cmp"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/pkg/errors"
)

// Plan divides a run into tasks.
type Plan struct {
	Grid  []Axis // settings whose values are combined; empty for one cell
	Parts int    // tasks that share the chains of a cell; 0 counts as 1
}

// Axis is a setting, by its name in configurations, with its values.
type Axis struct {
	Setting string
	Values  []string
}

// Task is one of a plan's tasks.
type Task struct {
	Settings []Setting // its cell's, in the order of the axes
	Part     int       // from 0
	Parts    int
	Dir      string // directory of its run below the directory of all tasks, with slashes; "." for a single task
}

// Setting is a setting with one of its values.
type Setting struct{ Name, Value string }

// maxTasks is the largest number of tasks. Schedulers refuse larger arrays.
const maxTasks = 100000

// Validate returns an error for a plan without tasks, with too many, or with duplicate settings or
// values.
func (p Plan) Validate() error {
	if p.Parts < 0 {
		return errors.Errorf("cluster: parts must be at least 1, got %d", p.Parts)
	}
	tasks := max(1, p.Parts)
	known := map[string]bool{}
	for _, axis := range p.Grid {
		if known[axis.Setting] {
			return errors.Errorf("cluster: grid: %s is given twice", axis.Setting)
		}
		known[axis.Setting] = true
		if len(axis.Values) == 0 {
			return errors.Errorf("cluster: grid: %s has no values", axis.Setting)
		}
		dirs := map[string]bool{}
		for _, value := range axis.Values {
			if dir := dirOf(value); dirs[dir] {
				return errors.Errorf("cluster: grid: two values of %s have the same directory name %s", axis.Setting, dir)
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

// Tasks returns the number of tasks. The plan must be valid.
func (p Plan) Tasks() int {
	tasks := max(1, p.Parts)
	for _, axis := range p.Grid {
		tasks *= len(axis.Values)
	}
	return tasks
}

// Task returns the task of a number, from 0. Parts vary fastest, then the values of the last axis.
func (p Plan) Task(number int) (Task, error) {
	if err := p.Validate(); err != nil {
		return Task{}, err
	}
	if number < 0 || number >= p.Tasks() {
		return Task{}, errors.Errorf("cluster: task must be 0 to %d, got %d", p.Tasks()-1, number)
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
	t.Dir = cmp.Or(t.Dir, ".")
	return t, nil
}

// dirOf turns a value into a part of a directory name that is valid on every system.
func dirOf(value string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("=.-_", r) {
			return r
		}
		return '-'
	}, value)
}

// Chains returns the first chain of the task's part, and the number of its chains, of all chains of
// the cell.
func (t Task) Chains(all int) (first, count int, err error) {
	if all%t.Parts != 0 {
		return 0, 0, errors.Errorf("cluster: chains must be a multiple of the %d parts, got %d", t.Parts, all)
	}
	count = all / t.Parts
	return t.Part * count, count, nil
}

// indexVariables are the environment variables that schedulers pass a task's number in.
var indexVariables = []string{"SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX"}

// Index returns the number of the task that a scheduler started this process for. lookup is
// os.LookupEnv or a substitute. It returns an error if no scheduler's variable is set.
func Index(lookup func(string) (string, bool)) (int, error) {
	for _, name := range indexVariables {
		text, given := lookup(name)
		if !given {
			continue
		}
		number, err := strconv.Atoi(text)
		return number, errors.Wrapf(err, "cluster: %s", name)
	}
	return 0, errors.Errorf("cluster: no task number: the environment has none of %s", strings.Join(indexVariables, ", "))
}
