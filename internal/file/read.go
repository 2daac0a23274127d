package file

import (
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/pkg/errors"
)

// Limits of the sizes of files in bytes. A file of a run may come from anywhere, and reading it
// must not take all memory: nothing that Pollen writes is larger than these.
const (
	MaxRecord  = 64 << 10  // one small JSON object
	MaxJSON    = 64 << 20  // a JSON file of a run
	MaxJournal = 256 << 20 // an index or metrics
)

// Open opens a regular file of at most max bytes to read; max 0 is no limit. Anything else at path
// is an error at once: a directory, a device, and a FIFO, which would wait for a writer. Symbolic
// links are followed. The error's cause is os.ErrNotExist if there is nothing at path.
func Open(path string, max int64) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, errors.WithStack(err)
	}
	if err := checkRegular(path, info, max); err != nil {
		return nil, err
	}
	opened, err := os.OpenFile(path, os.O_RDONLY|noWait, 0)
	if err != nil {
		return nil, errors.WithStack(err)
	}
	// Another file may have taken the place since.
	if info, err = opened.Stat(); err == nil {
		err = checkRegular(path, info, max)
	}
	if err != nil {
		opened.Close()
		return nil, errors.WithStack(err)
	}
	return opened, nil
}

// IrregularError is the error, within an os.PathError, of a file that is not a regular file or is
// too large.
type IrregularError struct{ Problem string }

// Error describes the problem without the file's name.
func (e *IrregularError) Error() string { return e.Problem }

// Irregular returns an error for a file that must not be read, whose cause is an IrregularError.
func Irregular(path, format string, values ...any) error {
	return errors.WithStack(&os.PathError{Op: "read", Path: path, Err: &IrregularError{fmt.Sprintf(format, values...)}})
}

func checkRegular(path string, info os.FileInfo, max int64) error {
	switch {
	case !info.Mode().IsRegular():
		return Irregular(path, "it must be a regular file, got a %s", kind(info.Mode()))
	case max > 0 && info.Size() > max:
		return Irregular(path, "it must have at most %d bytes, got %d", max, info.Size())
	}
	return nil
}

// kind names what is at a path instead of a regular file.
func kind(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "directory"
	case mode&fs.ModeSymlink != 0:
		return "symbolic link"
	case mode&fs.ModeNamedPipe != 0:
		return "named pipe"
	case mode&fs.ModeSocket != 0:
		return "socket"
	}
	return "device"
}

// Read returns the content of a regular file of at most max bytes. Its errors are Open's.
func Read(path string, max int64) ([]byte, error) {
	opened, err := Open(path, max)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	return ReadOpened(opened, max)
}

// ReadOpened returns the rest of a file that Open opened, and an error if more than max bytes are
// left: a file may grow, and some of the system's files have no size.
func ReadOpened(from *os.File, max int64) ([]byte, error) {
	info, err := from.Stat()
	if err != nil {
		return nil, errors.WithStack(err)
	}
	content := make([]byte, 0, min(info.Size(), max)+1) // the last byte is for the end of the file
	for {
		n, err := from.Read(content[len(content):cap(content)])
		content = content[:len(content)+n]
		switch {
		case int64(len(content)) > max:
			return nil, Irregular(from.Name(), "it must have at most %d bytes, got more", max)
		case err == io.EOF:
			return content, nil
		case err != nil:
			return nil, errors.WithStack(err)
		case len(content) == cap(content):
			content = append(content, 0)[:len(content)]
		}
	}
}
