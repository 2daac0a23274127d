package lock

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/file"
)

// The files of a locked directory: one that the operating system locks, and the owner's record.
const (
	File   = "lock"
	Record = "writer.json"
)

// Owner is the process that writes, or wrote last.
type Owner struct {
	Host    string `json:"host"`
	Process int    `json:"process"`
	Turn    uint64 `json:"turn"`
	Writes  bool   `json:"writes"` // until the owner releases the lock; a kill leaves it true
}

// Taken is the error of a directory whose lock another process has.
type Taken struct {
	Dir   string
	Owner Owner
}

// Error names the owner.
func (t *Taken) Error() string {
	if t.Owner.Process == 0 {
		return fmt.Sprintf("another process writes in %s", t.Dir)
	}
	return fmt.Sprintf("process %d on %s writes in %s", t.Owner.Process, t.Owner.Host, t.Dir)
}

// Lost is the error of a process whose turn to write is over.
type Lost struct {
	Dir string
	By  Owner
}

// Error names the process whose turn it is.
func (l *Lost) Error() string {
	return fmt.Sprintf("process %d on %s has taken over writing in %s: this process must stop writing", l.By.Process, l.By.Host, l.Dir)
}

// Lock is the right to write to a directory.
type Lock struct {
	dir    string
	owner  Owner
	system *flock.Flock // nil if the file system has no locks
	remark string
}

// Take acquires the lock of an existing directory without waiting. The error is Taken while another
// process has it.
func Take(dir string) (*Lock, error) {
	l := &Lock{dir: dir}
	if err := checkFile(dir); err != nil {
		return nil, err
	}
	system := flock.New(filepath.Join(dir, File), flock.SetFlag(os.O_CREATE|os.O_RDWR|openFlags), flock.SetPermissions(0o644))
	got, failed := system.TryLock()
	before, err := Who(dir)
	switch {
	case failed == nil && !got:
		return nil, errors.WithStack(&Taken{dir, before})
	case failed == nil:
		l.system = system
	case !unsupported(failed):
		return nil, errors.Wrapf(failed, "lock: %s", dir)
	case err == nil && before.Writes && !ended(before):
		return nil, errors.WithMessagef(&Taken{dir, before}, "lock: the file system has no locks (%v); if that process has ended, remove %s",
			failed, filepath.Join(dir, Record))
	default:
		l.remark = fmt.Sprintf("%s: the file system has no locks (%v): nothing stops a second writer that starts at the same moment", dir, failed)
	}
	if err != nil && l.system != nil {
		l.remark = fmt.Sprintf("%v; it is written again", err)
	}
	if l.owner.Host, err = os.Hostname(); err != nil {
		l.owner.Host = "unknown"
	}
	if kind := shared(dir); l.system != nil && before.Writes && kind != "" && before.Host != l.owner.Host {
		l.remark = fmt.Sprintf("%s: process %d on %s did not end its work; where machines do not share the locks of %s, it may still run, until it next writes",
			dir, before.Process, before.Host, kind)
	}
	l.owner.Process, l.owner.Turn, l.owner.Writes = os.Getpid(), before.Turn+1, true
	if err := l.record(l.owner, nil); err != nil {
		l.unlock()
		return nil, err
	}
	return l, nil
}

// checkFile refuses a lock that is not a regular file: the target of a link would be created
// outside the directory, and opening a FIFO waits for another process.
func checkFile(dir string) error {
	path := filepath.Join(dir, File)
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return errors.Errorf("lock: %s must be a regular file, got %v; remove it", path, info.Mode())
	}
	return nil
}

// Remark returns a remark about this lock for the user, or "".
func (l *Lock) Remark() string { return l.remark }

// Check returns Lost if another process has taken the lock since. The caller must not write then.
func (l *Lock) Check() error {
	now, err := Who(l.dir)
	if err != nil {
		return err
	}
	if now != l.owner {
		return errors.WithStack(&Lost{l.dir, now})
	}
	return nil
}

// Release releases the lock.
func (l *Lock) Release() error {
	ended := l.owner
	ended.Writes = false
	err := l.record(ended, l.Check)
	var lost *Lost
	if err != nil && errors.As(l.Check(), &lost) {
		err = nil // another process has it
	}
	return cmp.Or(err, l.unlock())
}

func (l *Lock) unlock() error {
	if l.system == nil {
		return nil
	}
	return errors.Wrapf(l.system.Unlock(), "lock: %s", l.dir)
}

// record writes an owner's record. may is as in file.WriteIf.
func (l *Lock) record(o Owner, may func() error) error {
	content, err := json.Marshal(o)
	if err != nil {
		return errors.Wrap(err, "lock")
	}
	return errors.WithMessage(file.WriteIf(filepath.Join(l.dir, Record), append(content, '\n'), may), "lock")
}

// Who returns the owner by a directory's record; the zero Owner if there is none.
func Who(dir string) (Owner, error) {
	path := filepath.Join(dir, Record)
	content, err := file.Read(path, file.MaxRecord)
	if os.IsNotExist(errors.Cause(err)) {
		return Owner{}, nil
	}
	var o Owner
	if err == nil {
		err = json.Unmarshal(content, &o)
	}
	return o, errors.Wrapf(err, "lock: %s", path)
}

// Writing reports whether a process holds the lock of dir now, as far as this machine can tell, and
// returns the owner.
func Writing(dir string) (Owner, bool) {
	owner, err := Who(dir)
	if err != nil || !owner.Writes || checkFile(dir) != nil {
		return owner, false
	}
	system := flock.New(filepath.Join(dir, File), flock.SetFlag(os.O_RDONLY|openFlags))
	got, err := system.TryRLock()
	if err == nil && got {
		_ = system.Unlock() // nothing depends on it: the file is closed
		return owner, false
	}
	return owner, err == nil || !ended(owner)
}
