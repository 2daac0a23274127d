package main

import (
	"encoding/json"
	"os"
	"slices"

	"github.com/pkg/errors"
)

// resume reads the record of an earlier run on the same GPU. The side that was being timed when
// that run was killed counts as failed.
func (r *record) resume(path string) error {
	if path == "" {
		return errors.New("benchmarks: --resume needs --json")
	}
	content, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil
	}
	var old record
	if err == nil {
		err = json.Unmarshal(content, &old)
	}
	if err != nil {
		return errors.Wrap(err, "benchmarks: resume")
	}
	if old.Machine.GPU != r.Machine.GPU {
		return errors.Errorf("benchmarks: --resume needs a record of this GPU, got one of %q", old.Machine.GPU)
	}
	r.Entries = old.Entries
	if old.Begun != nil && !old.hasFailed(old.Begun.Case, old.Begun.Side) {
		old.Begun.Error = "the process ended before the work did"
		old.Failed = append(old.Failed, *old.Begun)
	}
	for _, f := range old.Failed {
		r.fail(f)
	}
	return nil
}

// fail adds a failure, which is also listed as left out.
func (r *record) fail(f failure) {
	r.Failed = append(r.Failed, f)
	r.Left = append(r.Left, f.Case+" of "+f.Side+": "+f.Error)
}

// entry returns the entry of a side, or nil.
func (r *record) entry(comparison, side string) *entry {
	for i := range r.Entries {
		if e := &r.Entries[i]; e.Case == comparison && e.Side == side {
			return e
		}
	}
	return nil
}

// hasFailed reports whether a side failed, in this run or in the one that it resumes.
func (r *record) hasFailed(comparison, side string) bool {
	return slices.ContainsFunc(r.Failed, func(f failure) bool { return f.Case == comparison && f.Side == side })
}

// put adds a side's figures, or replaces them. A step processes items of the unit, such as
// images.
func (r *record) put(comparison string, s *side, items float64, unit string) *entry {
	e := r.entry(comparison, s.name)
	if e == nil {
		r.Entries = append(r.Entries, entry{Case: comparison, Side: s.name, Unit: unit})
		e = &r.Entries[len(r.Entries)-1]
	}
	e.Seconds = s.figures()
	e.Rate = items / e.Seconds.Median
	return e
}
