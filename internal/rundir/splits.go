package rundir

import (
	"bytes"
	"cmp"
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
	packed, err := compressed(content)
	if err != nil {
		return err
	}
	return writeListed(w.index, w.dir, index.OfContent(SplitsFile, packed), packed, w.Check)
}

// AddSplits writes or replaces SplitsFile as AddFile does a JSON file.
func AddSplits(dir string, content []byte, remark func(string)) error {
	packed, err := compressed(content)
	if err != nil {
		return err
	}
	return addListed(dir, remark, func(x *index.Index, to *journal.Writer, may func() error) error {
		return replaceListed(x, to, dir, index.OfContent(SplitsFile, packed), packed, may)
	})
}

// compressed returns a gzip file. It has no time, so that equal contents make equal files.
func compressed(content []byte) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write(content)
	err = cmp.Or(err, z.Close())
	return b.Bytes(), errors.Wrap(err, "pollen: "+SplitsFile)
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
	case !x.Lists(SplitsFile, index.OfContent(SplitsFile, packed).Sum):
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
