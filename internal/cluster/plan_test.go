package cluster

import (
	"fmt"
	"strings"
	"testing"
)

func TestTasks(t *testing.T) {
	plan := Plan{Grid: []Axis{{"method", []string{"sgld", "psgld:gamma=none"}}, {"seed", []string{"1", "2"}}}, Parts: 2}
	want := []string{
		"method=sgld,seed=1/part-0", "method=sgld,seed=1/part-1", "method=sgld,seed=2/part-0", "method=sgld,seed=2/part-1",
		"method=psgld-gamma=none,seed=1/part-0", "method=psgld-gamma=none,seed=1/part-1",
		"method=psgld-gamma=none,seed=2/part-0", "method=psgld-gamma=none,seed=2/part-1",
	}
	if plan.Tasks() != len(want) {
		t.Fatalf("%d tasks, want %d", plan.Tasks(), len(want))
	}
	for number, dir := range want {
		task, err := plan.Task(number)
		if err != nil || task.Dir != dir {
			t.Errorf("task %d is in %q (%v), want %q", number, task.Dir, err, dir)
		}
		first, count, err := task.Chains(6)
		if err != nil || first != 3*(number%2) || count != 3 {
			t.Errorf("task %d has %d chains from %d on (%v), want 3", number, count, first, err)
		}
	}
	if task, _ := plan.Task(4); fmt.Sprint(task.Settings) != "[{method psgld:gamma=none} {seed 1}]" {
		t.Errorf("task 4 has the settings %v", task.Settings)
	}
	for _, number := range []int{-1, len(want)} {
		if _, err := plan.Task(number); err == nil || !strings.Contains(err.Error(), "must be 0 to 7") {
			t.Errorf("task %d: %v", number, err)
		}
	}
}

func TestOneTask(t *testing.T) {
	task, err := Plan{}.Task(0)
	if err != nil || task.Dir != "." || len(task.Settings) != 0 {
		t.Errorf("%+v, %v", task, err)
	}
	task, err = Plan{Parts: 1000}.Task(7)
	if err != nil || task.Dir != "part-007" {
		t.Errorf("%+v, %v: want directories that sort by number", task, err)
	}
	if _, _, err := task.Chains(999); err == nil || !strings.Contains(err.Error(), "must be a multiple of the 1000 parts") {
		t.Errorf("999 chains in 1000 parts: %v", err)
	}
}

func TestPlanRefuses(t *testing.T) {
	for want, plan := range map[string]Plan{
		"must be at least 1":       {Parts: -1},
		"seed is given twice":      {Grid: []Axis{{"seed", []string{"1"}}, {"seed", []string{"2"}}}},
		"seed has no values":       {Grid: []Axis{{"seed", nil}}},
		"same directory name a-b":  {Grid: []Axis{{"model", []string{"a/b", "a:b"}}}},
		"more than 100000":         {Grid: []Axis{{"seed", []string{"1", "2"}}}, Parts: 99999},
		"same directory name sgld": {Grid: []Axis{{"method", []string{"sgld", "sgld"}}}},
		"two values of chains ":    {Grid: []Axis{{"chains", []string{"2", "2"}}}},
	} {
		if _, err := plan.Task(0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", plan, err, want)
		}
	}
}

func TestIndex(t *testing.T) {
	from := func(values map[string]string) func(string) (string, bool) {
		return func(name string) (string, bool) { v, ok := values[name]; return v, ok }
	}
	for name, want := range map[string]int{"SLURM_ARRAY_TASK_ID": 3, "JOB_COMPLETION_INDEX": 12} {
		if got, err := Index(from(map[string]string{name: fmt.Sprint(want)})); err != nil || got != want {
			t.Errorf("%s: %d, %v", name, got, err)
		}
	}
	if _, err := Index(from(nil)); err == nil || !strings.Contains(err.Error(), "none of SLURM_ARRAY_TASK_ID, JOB_COMPLETION_INDEX") {
		t.Errorf("nothing: %v", err)
	}
	if _, err := Index(from(map[string]string{"SLURM_ARRAY_TASK_ID": "x"})); err == nil || !strings.Contains(err.Error(), "SLURM_ARRAY_TASK_ID") {
		t.Errorf("no number: %v", err)
	}
}
