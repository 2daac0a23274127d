package rundir

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/internal/index"
	"github.com/pollen-ml/pollen/internal/journal"
)

// maxSplits is the largest size of SplitsFile and of its content, which has a line for each image.
const maxSplits = 1 << 30

// WriteSplits writes SplitsFile, compressed, and lists it in the index with its SHA-256, since a
// CSV file has no place for a checksum.
func (w *Writer) WriteSplits(content []byte) error {
	return writeSplits(w.index, w.dir, content, w.Check)
}

// AddSplits replaces SplitsFile in the directory of a run that no process writes. The error is
// LockedError while another process writes.
func AddSplits(dir string, content []byte, remark func(string)) error {
	return addListed(dir, remark, func(to *journal.Writer, may func() error) error { return writeSplits(to, dir, content, may) })
}

func writeSplits(to *journal.Writer, dir string, content []byte, may func() error) error {
	content, err := compressed(content)
	if err != nil {
		return errors.Wrap(err, "pollen: "+SplitsFile)
	}
	if err := file.WriteIf(filepath.Join(dir, SplitsFile), content, may); err != nil {
		return errors.Wrap(err, "pollen: "+SplitsFile)
	}
	return index.Add(to, index.OfContent(SplitsFile, content))
}

// compressed returns a gzip file. It has no time, so that equal contents make equal files.
func compressed(content []byte) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(content); err != nil {
		return nil, err
	}
	err := z.Close()
	return b.Bytes(), err
}

// ReadSplits returns the content of SplitsFile, decompressed. The error's cause is os.ErrNotExist
// if the run has none, and the error is DamagedError if it is not what the index lists.
func ReadSplits(dir string) ([]byte, error) {
	x, err := ReadIndex(dir)
	if err != nil {
		return nil, err
	}
	return readSplits(dir, x)
}

func readSplits(dir string, x *index.Index) ([]byte, error) {
	path, line := filepath.Join(dir, SplitsFile), x.Lines[SplitsFile]
	packed, err := file.Read(path, maxSplits)
	switch {
	case os.IsNotExist(errors.Cause(err)) && line.Sum != "":
		return nil, damaged(path, errMissing)
	case errors.As(err, new(*file.IrregularError)):
		return nil, damaged(path, err)
	case err != nil:
		return nil, errors.Wrap(err, "pollen")
	case line.Sum == "":
		return nil, damaged(path, errNotListed)
	case index.OfContent(SplitsFile, packed).Sum != line.Sum:
		return nil, damaged(path, errOther)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, damaged(path, err)
	}
	content, err := io.ReadAll(io.LimitReader(z, maxSplits))
	if err == nil && len(content) == maxSplits {
		err = errors.Errorf("it unpacks to %d bytes or more", maxSplits)
	}
	if err != nil {
		return nil, damaged(path, err)
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
