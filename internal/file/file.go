package file

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/pkg/errors"
)

// partial ends the names of temporary files.
const partial = ".partial"

// created counts this process's temporary files, whose names must differ.
var created atomic.Uint64

// Pending is a file that is being written and is not at its path yet.
type Pending struct {
	path string
	file *os.File // nil after Commit or Close
}

// Write replaces or creates the file at path, with mode 0644 before the umask. If it returns no
// error, the content is on the disk. After an error the path is as it was, unless the error is that
// only the directory could not be synchronised. A symbolic link at path is replaced, not followed.
func Write(path string, content []byte) error { return WriteIf(path, content, nil) }

// WriteIf is Write, but calls may once the temporary file exists, unless may is nil. It discards
// the content if may returns an error. So another process can take a directory over: it makes may
// fail, then calls Sweep. Each path is written before the Sweep or not at all, because afterwards
// the temporary file is missing.
func WriteIf(path string, content []byte, may func() error) error {
	p, err := Create(path)
	if err != nil {
		return err
	}
	defer p.Close()
	if may != nil {
		if err := may(); err != nil {
			return err
		}
	}
	if _, err := p.Write(content); err != nil {
		return err
	}
	return p.Commit()
}

// Create begins a file that Commit puts at path and Close discards. The directory must exist, and
// anything at path must be a regular file or a symbolic link.
func Create(path string) (*Pending, error) {
	if err := checkPlace(path); err != nil {
		return nil, err
	}
	var file *os.File
	_, err := temporary(path, func(name string) (err error) {
		if _, err := ask(CallCreate, path, 0); err != nil {
			return err
		}
		file, err = os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		return err
	})
	if err != nil {
		return nil, errors.Wrapf(err, "file: create %s", path)
	}
	return &Pending{path: path, file: file}, nil
}

// temporary calls create with names of temporary files for path until one is not taken, and returns
// it. A name is taken if a process of the same number was killed, or runs on another machine that
// shares the directory.
func temporary(path string, create func(name string) error) (name string, err error) {
	dir, base := filepath.Split(path)
	stem := dir + "." + base + "." + strconv.Itoa(os.Getpid()) + "-"
	for {
		name = stem + strconv.FormatUint(created.Add(1), 10) + partial
		if err = create(name); !os.IsExist(err) {
			return name, err
		}
	}
}

// checkPlace refuses a path at which there is something that a file must not replace, such as a
// device.
func checkPlace(path string) error {
	info, err := os.Lstat(path)
	switch {
	case os.IsNotExist(err):
		return nil
	case err != nil:
		return errors.Wrapf(err, "file: create %s", path)
	case info.IsDir():
		return errors.Errorf("file: create %s: must be a file, got a directory", path)
	case !info.Mode().IsRegular() && info.Mode()&fs.ModeSymlink == 0:
		return errors.Errorf("file: create %s: must be a regular file, got %v", path, info.Mode().Type())
	}
	return nil
}

// Write adds to the content. It implements io.Writer.
func (p *Pending) Write(content []byte) (int, error) {
	if p.file == nil {
		return 0, errors.Errorf("file: write %s: it is committed or closed already", p.path)
	}
	n, err := write(p.file, p.path, content)
	return n, errors.Wrapf(err, "file: write %s", p.path)
}

// Commit puts the content on the disk and then, atomically, at the path. Afterwards, even on an
// error, the temporary file is gone.
func (p *Pending) Commit() error { return p.CommitAfter(func() error { return nil }) }

// CommitKeeping is Commit, but keeps what was at the path as older, in the same directory. Once the
// content is on the disk, may is called, with the promise of WriteIf for both files.
func (p *Pending) CommitKeeping(older string, may func() error) error {
	return p.CommitAfter(func() error {
		before := secondName(p.path)
		if before != p.path {
			// Nothing is left to remove, unless an error came first or older was the same file.
			defer os.Remove(before)
		}
		if err := may(); err != nil {
			return err
		}
		err := replace(before, older)
		if before == p.path && os.IsNotExist(err) {
			return nil // there was nothing to keep
		}
		return err
	})
}

// secondName gives the file at path a temporary name, too, which Sweep removes. It returns path if
// there is no file, or if the file system has no links: a process that is suspended between asking
// and renaming, and replaced meanwhile, then still takes the file at the path away.
func secondName(path string) string {
	name, err := temporary(path, func(name string) error {
		if _, err := ask(CallLink, path, 0); err != nil {
			return err
		}
		return os.Link(path, name)
	})
	if err != nil {
		return path
	}
	return name
}

// CommitAfter is Commit, but calls last once the content is on the disk and before it is at the
// path. If last returns an error, the content is discarded.
func (p *Pending) CommitAfter(last func() error) error {
	if p.file == nil {
		return errors.Errorf("file: commit %s: it is committed or closed already", p.path)
	}
	name := p.file.Name()
	_, err := ask(CallSync, p.path, 0)
	if err == nil {
		err = p.file.Sync()
	}
	err = cmp.Or(err, p.file.Close())
	p.file = nil
	if err == nil {
		err = last()
	}
	if err == nil {
		err = replace(name, p.path)
	}
	if err != nil {
		os.Remove(name) // the error to report is the first one
	}
	return errors.Wrapf(err, "file: commit %s", p.path)
}

// Close discards the content and removes the temporary file. After Commit it does nothing, so that
// it can be deferred.
func (p *Pending) Close() error {
	if p.file == nil {
		return nil
	}
	name := p.file.Name()
	err := cmp.Or(p.file.Close(), os.Remove(name))
	p.file = nil
	return errors.Wrapf(err, "file: close %s", p.path)
}

// Sweep removes the temporary files that killed processes left in a directory, but not in its
// subdirectories. No process may be writing there. It is no error if the directory does not exist.
func Sweep(dir string) error {
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return errors.Wrapf(err, "file: sweep %s", dir)
	}
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !IsTemporary(entry.Name()) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil && !os.IsNotExist(err) {
			return errors.Wrapf(err, "file: sweep %s", dir)
		}
	}
	return nil
}

// IsTemporary reports whether a name is one that Create gives: .<base>.<process>-<number>.partial.
func IsTemporary(name string) bool {
	stem, ok := strings.CutSuffix(name, partial)
	dot := strings.LastIndexByte(stem, '.')
	if !ok || dot < 1 || stem[0] != '.' {
		return false
	}
	process, number, ok := strings.Cut(stem[dot+1:], "-")
	return ok && digits(process) && digits(number)
}

func digits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}
