package journal

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/file"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// The member that ends each line: opening, eight hexadecimal digits, closing.
const (
	opening = `,"crc":"`
	closing = `"}`
	ending  = len(opening) + 8 + len(closing)
)

// longestLine bounds the memory for reading.
const longestLine = 1 << 20

// Tail is where a journal's intact lines end.
type Tail struct {
	Lines int
	Torn  bool // the last line is incomplete, or only lacks its end: a process was killed there
	sum   uint32
}

// addChecksum adds the member to a JSON object that is not empty.
func addChecksum(line []byte, sum uint32) ([]byte, uint32) {
	sum = crc32.Update(sum, castagnoli, line)
	return fmt.Appendf(line[:len(line)-1:len(line)-1], "%s%08x%s", opening, sum, closing), sum
}

// removeChecksum returns the object that addChecksum was given, and whether the checksum is right.
func removeChecksum(line []byte, sum uint32) ([]byte, uint32, bool) {
	if !hasChecksum(line) {
		return nil, 0, false
	}
	object := append(bytes.Clone(line[:len(line)-ending]), '}')
	again, sum := addChecksum(object, sum)
	return object, sum, bytes.Equal(again, line)
}

// hasChecksum reports whether a line ends as a journal's lines do.
func hasChecksum(line []byte) bool {
	return len(line) > ending && line[0] == '{' && bytes.HasSuffix(line, []byte(closing)) && bytes.HasPrefix(line[len(line)-ending:], []byte(opening))
}

// Read passes the intact lines to use, without their last member, and returns where they end. A
// changed line is an error.
func Read(path string, use func(object []byte) error) (tail Tail, err error) {
	opened, err := file.Open(path, file.MaxJournal)
	if err != nil {
		return tail, errors.Wrap(err, "journal")
	}
	defer opened.Close()
	return ReadFrom(opened, path, use)
}

// ReadFrom is Read from a reader; path is used in errors.
func ReadFrom(from io.Reader, path string, use func(object []byte) error) (tail Tail, err error) {
	lines := bufio.NewReaderSize(from, 1<<16)
	for {
		line, err := readLine(lines)
		if err != nil && err != io.EOF {
			return tail, errors.Wrapf(err, "journal: %s: line %d", path, tail.Lines+1)
		}
		if len(line) == 0 {
			return tail, nil
		}
		whole := line[len(line)-1] == '\n'
		object, sum, ok := removeChecksum(bytes.TrimSuffix(line, []byte("\n")), tail.sum)
		switch {
		case ok:
			if err := use(object); err != nil {
				return tail, errors.WithMessagef(err, "journal: %s: line %d", path, tail.Lines+1)
			}
			tail.Lines, tail.sum = tail.Lines+1, sum
		case !whole && !endsInside(line, tail.sum):
			tail.Torn = true
			return tail, nil
		default:
			return tail, errors.Errorf("%s: line %d was changed, or lines before it are missing", path, tail.Lines+1)
		}
		if tail.Torn = !whole; tail.Torn {
			return tail, nil
		}
	}
}

// readLine reads a line with its end.
func readLine(from *bufio.Reader) (line []byte, err error) {
	for {
		part, err := from.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > longestLine {
			return nil, errors.Errorf("more than %d bytes", longestLine)
		}
		if err != bufio.ErrBufferFull {
			return line, err
		}
	}
}

// endsInside reports whether a complete line is followed by something other than its end, which no
// killed process leaves.
func endsInside(line []byte, sum uint32) bool {
	at := bytes.LastIndex(line, []byte(closing))
	if at < 0 {
		return false
	}
	_, _, ok := removeChecksum(line[:at+len(closing)], sum)
	return ok
}

// Writer appends lines to a journal. It must be used by one goroutine at a time, except Sync.
type Writer struct {
	file   *file.Appended
	buffer *bufio.Writer
	tail   Tail
}

// Create replaces what is at path by an empty journal. It calls may as file.WriteIf does.
func Create(path string, may func() error) (*Writer, error) {
	if err := file.WriteIf(path, nil, may); err != nil {
		return nil, err
	}
	return Append(path, Tail{})
}

// Append opens a journal to write after its Tail. The journal must end there, with a complete line.
func Append(path string, tail Tail) (*Writer, error) {
	opened, err := file.Append(path)
	if err != nil {
		return nil, err
	}
	return &Writer{opened, bufio.NewWriter(opened), tail}, nil
}

// Add adds the JSON of a value, which must be an object with members, as a line. The line may stay
// in memory until Flush.
func (w *Writer) Add(value any) error {
	object, err := json.Marshal(value)
	if err != nil {
		return errors.Wrap(err, "journal")
	}
	var line []byte
	line, w.tail.sum = addChecksum(object, w.tail.sum)
	w.tail.Lines++
	_, err = w.buffer.Write(append(line, '\n'))
	return err
}

// Flush passes all lines to the operating system, so that they outlive the process.
func (w *Writer) Flush() error { return w.buffer.Flush() }

// Sync returns once all lines that were flushed are on the disk. Others may be added meanwhile.
func (w *Writer) Sync() error { return w.file.Sync() }

// Close flushes, returns once all lines are on the disk, and closes the file.
func (w *Writer) Close() error {
	err := w.buffer.Flush()
	if err == nil {
		err = w.file.Sync()
	}
	return cmp.Or(err, w.file.Close())
}

// Rewrite replaces a journal atomically by the lines that add passes to its argument. It calls may
// as file.WriteIf does.
func Rewrite(path string, may func() error, add func(line func(value any) error) error) (Tail, error) {
	pending, err := file.Create(path)
	if err != nil {
		return Tail{}, err
	}
	defer pending.Close()
	if may != nil {
		if err := may(); err != nil {
			return Tail{}, err
		}
	}
	w := Writer{buffer: bufio.NewWriter(pending)}
	err = add(w.Add)
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = pending.Commit()
	}
	return w.tail, err
}
