package comparison

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/checksum"
	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/internal/lock"
	"github.com/pollen-ml/pollen/internal/rundir"
)

// recordFile is the name of the record's file, recordFormat its format number.
const (
	recordFile   = "comparison.json"
	recordFormat = 1
)

// Entry is one of the methods that are compared.
type Entry struct {
	Title string     `json:"title"`
	Spec  bayes.Spec `json:"config"`
}

// Dir returns the name of its run's directory: the title in lower case.
func (e Entry) Dir() string { return strings.ToLower(e.Title) }

// Record is the content of a comparison's file.
type Record struct {
	Format  int               `json:"format"`
	Notes   map[string]string `json:"notes,omitempty"` // from the caller, such as where the data came from
	Entries []Entry           `json:"entries"`
}

// Comparison is an open comparison, locked for this process until Close.
type Comparison struct {
	Record
	dir  string
	lock *lock.Lock
}

// Create starts a comparison in a new or empty directory. It returns a bayes.LockedError while
// another process writes there.
func Create(dir string, entries []Entry, notes map[string]string) (*Comparison, error) {
	c := &Comparison{Record: Record{recordFormat, maps.Clone(notes), entries}, dir: dir}
	if err := c.check(); err != nil {
		return nil, err
	}
	if err := rundir.CheckEmpty(dir); err != nil {
		return nil, err
	}
	if err := file.MakeDir(dir); err != nil {
		return nil, errors.Wrap(err, "comparison")
	}
	if err := c.acquireLock(); err != nil {
		return nil, err
	}
	content, err := checksum.JSON(c.Record, "  ")
	if err == nil {
		err = file.Write(filepath.Join(dir, recordFile), content)
	}
	if err != nil {
		c.Close()
		return nil, errors.Wrap(err, "comparison")
	}
	return c, nil
}

// Begin calls Create in a new or empty directory, and Open in one with a comparison, so that a
// program that is started again continues. It returns an error if the comparison has other entries.
func Begin(dir string, entries []Entry, notes map[string]string) (*Comparison, error) {
	if _, err := os.Stat(filepath.Join(dir, recordFile)); os.IsNotExist(err) {
		return Create(dir, entries, notes)
	}
	c, err := Open(dir)
	if err != nil {
		return nil, err
	}
	want, err := json.Marshal(entries)
	if err == nil {
		var got []byte
		if got, err = json.Marshal(c.Entries); err == nil && !bytes.Equal(got, want) {
			err = errors.Errorf("comparison: %s has other entries: use the same entries or another directory", dir)
		}
	}
	if err != nil {
		c.Close()
		return nil, errors.WithStack(err)
	}
	return c, nil
}

// Open opens the comparison in dir to continue it. It returns a bayes.LockedError while another
// process writes there, and a bayes.DamagedError if the record's checksum does not match.
func Open(dir string) (*Comparison, error) {
	path := filepath.Join(dir, recordFile)
	content, err := file.Read(path, file.MaxJSON)
	if err != nil {
		return nil, errors.Wrapf(err, "comparison: %s is not a comparison's directory", dir)
	}
	c := &Comparison{dir: dir}
	if c.Record, err = parse(content); err != nil {
		return nil, errors.WithStack(&bayes.DamagedError{File: path, Cause: err})
	}
	return c, c.acquireLock()
}

// parse reads a record and verifies its checksum.
func parse(content []byte) (r Record, err error) {
	if _, err := checksum.Check(content, len(content)); err != nil {
		return r, err
	}
	if err := json.Unmarshal(content, &r); err != nil {
		return r, errors.Wrap(err, "comparison")
	}
	if r.Format != recordFormat {
		return r, errors.Errorf("comparison: format must be %[2]d, got %[1]d: a newer version wrote it", r.Format, recordFormat)
	}
	return r, r.check()
}

// check returns an error for entries whose titles are not distinct, valid directory names.
func (r Record) check() error {
	taken := map[string]bool{lock.File: true, lock.Record: true, recordFile: true}
	for _, e := range r.Entries {
		name := e.Dir()
		if name == "" || name == "." || !filepath.IsLocal(name) || strings.ContainsAny(name, `/\`) || taken[name] {
			return errors.Errorf("comparison: titles must be distinct directory names, got %q", e.Title)
		}
		taken[name] = true
	}
	if len(r.Entries) == 0 {
		return errors.New("comparison: no entries")
	}
	return nil
}

func (c *Comparison) acquireLock() (err error) {
	c.lock, err = lock.Take(c.dir)
	var taken *lock.Taken
	if errors.As(err, &taken) {
		return errors.WithStack(&bayes.LockedError{Dir: c.dir, Host: taken.Owner.Host, Process: taken.Owner.Process, Cause: err})
	}
	return errors.Wrap(err, "comparison")
}

// Remark returns a remark about the directory's lock for the user, or "".
func (c *Comparison) Remark() string { return c.lock.Remark() }

// Fit trains an entry with bayes.Fit, or continues its run with bayes.Resume.
func (c *Comparison) Fit(ctx context.Context, e Entry, data *datasets.Splits, options ...bayes.Option) (*bayes.Run, error) {
	dir := filepath.Join(c.dir, e.Dir())
	run, err := bayes.Resume(ctx, dir, data, options...)
	var none *bayes.NotARunError
	if errors.As(err, &none) {
		return bayes.Fit(ctx, e.Spec, data, dir, options...)
	}
	return run, err
}

// Close releases the lock.
func (c *Comparison) Close() error { return errors.Wrap(c.lock.Release(), "comparison") }
