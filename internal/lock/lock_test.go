package lock

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pkg/errors"
)

func take(t *testing.T, dir string) *Lock {
	t.Helper()
	l, err := Take(dir)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestOneWriterAtATime(t *testing.T) {
	dir := t.TempDir()
	first := take(t, dir)
	if first.Remark() != "" || first.owner.Turn != 1 || first.owner.Process != os.Getpid() {
		t.Errorf("%+v, remark %q", first.owner, first.Remark())
	}
	if owner, writes := Writing(dir); !writes || owner != first.owner {
		t.Errorf("%+v writes: %t", owner, writes)
	}
	_, err := Take(dir)
	var taken *Taken
	if !errors.As(err, &taken) || taken.Owner != first.owner || !strings.Contains(err.Error(), dir) {
		t.Fatalf("a second writer: %v", err)
	}
	if err := first.Check(); err != nil {
		t.Error(err)
	}
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	if owner, writes := Writing(dir); writes || owner.Writes {
		t.Errorf("%+v writes: %t", owner, writes)
	}
	second := take(t, dir)
	if second.owner.Turn != 2 {
		t.Errorf("turn %d, want 2", second.owner.Turn)
	}
	if err := second.Release(); err != nil {
		t.Error(err)
	}
}

// A process that was thought dead finds out that another one writes, as where a file system does
// not share its locks.
func TestFencing(t *testing.T) {
	dir := t.TempDir()
	delayed := take(t, dir)
	if err := delayed.unlock(); err != nil { // its machine lost the connection
		t.Fatal(err)
	}
	next := take(t, dir)
	var lost *Lost
	if err := delayed.Check(); !errors.As(err, &lost) || lost.By != next.owner {
		t.Errorf("the delayed process: %v", err)
	}
	if err := delayed.Release(); err != nil {
		t.Error(err)
	}
	if err := next.Check(); err != nil {
		t.Errorf("the delayed process took the lock away: %v", err)
	}
	if err := next.Release(); err != nil {
		t.Error(err)
	}
}

func TestDamagedRecord(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, Record), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	l := take(t, dir)
	if !strings.Contains(l.Remark(), Record) {
		t.Errorf("remark %q", l.Remark())
	}
	if err := l.Check(); err != nil {
		t.Error(err)
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
	if _, err := Take(filepath.Join(dir, "nowhere")); err == nil {
		t.Error("a folder that is not there: no error")
	}
}

// Without the system's locks the record decides.
func TestEndedProcesses(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if ended(Owner{Host: host, Process: os.Getpid()}) || ended(Owner{Host: host + "-other", Process: 1 << 30}) {
		t.Error("a process that may run is said to be no more")
	}
}

// A lock that is a link, dangling or not, must not make this process create or lock a file
// elsewhere.
func TestLockIsALink(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "outside")
	if err := os.Symlink(outside, filepath.Join(dir, File)); err != nil {
		t.Skip(err)
	}
	if l, err := Take(dir); err == nil || !strings.Contains(err.Error(), "must be a regular file") {
		t.Errorf("Take = %v, %v, want an error for a link", l, err)
	}
	if _, err := os.Lstat(outside); !os.IsNotExist(err) {
		t.Errorf("the link's target was created (%v)", err)
	}
	if err := os.WriteFile(filepath.Join(dir, Record), []byte(`{"host":"other","process":1,"turn":1,"writes":true}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, writes := Writing(dir); writes {
		t.Error("Writing = true, want false")
	}
}
