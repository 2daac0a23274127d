package rundir

import (
	"os"
	"path/filepath"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/internal/index"
	"github.com/pollen-ml/pollen/internal/journal"
)

// maxSplits is the largest size of SplitsFile, which has a line for each image.
const maxSplits = 1 << 30

// WriteSplits writes SplitsFile and lists it in the index with the SHA-256 of its content, since a
// CSV file has no place for a checksum.
func (w *Writer) WriteSplits(content []byte) error {
	if err := w.Check(); err != nil {
		return err
	}
	return writeSplits(w.index, w.dir, content)
}

// AddSplits replaces SplitsFile in the directory of a run that no process writes. The error is
// LockedError while another process writes.
func AddSplits(dir string, content []byte, remark func(string)) error {
	return addListed(dir, remark, func(to *journal.Writer) error { return writeSplits(to, dir, content) })
}

func writeSplits(to *journal.Writer, dir string, content []byte) error {
	if err := file.Write(filepath.Join(dir, SplitsFile), content); err != nil {
		return errors.Wrap(err, "pollen: "+SplitsFile)
	}
	return index.Add(to, index.OfContent(SplitsFile, content))
}

// ReadSplits returns the content of SplitsFile. The error's cause is os.ErrNotExist if the run has
// none, and the error is DamagedError if it is not what the index lists.
func ReadSplits(dir string) ([]byte, error) {
	x, err := ReadIndex(dir)
	if err != nil {
		return nil, err
	}
	return readSplits(dir, x)
}

func readSplits(dir string, x *index.Index) ([]byte, error) {
	path, line := filepath.Join(dir, SplitsFile), x.Lines[SplitsFile]
	content, err := file.Read(path, maxSplits)
	switch {
	case os.IsNotExist(errors.Cause(err)) && line.Sum != "":
		return nil, damaged(path, errMissing)
	case errors.As(err, new(*file.IrregularError)):
		return nil, damaged(path, err)
	case err != nil:
		return nil, errors.Wrap(err, "pollen")
	case line.Sum == "":
		return nil, damaged(path, errNotListed)
	case index.OfContent(SplitsFile, content).Sum != line.Sum:
		return nil, damaged(path, errOther)
	}
	return content, nil
}

// splits checks SplitsFile, if the run has it.
func (v *verifier) splits() {
	if v.index == nil {
		return // the content's checksum is only there
	}
	_, err := readSplits(v.dir, v.index)
	if os.IsNotExist(errors.Cause(err)) || errors.Is(err, errMissing) {
		return // missing reports it if the index lists it
	}
	v.found(err)
}
