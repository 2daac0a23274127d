package optest

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/internal/npz"
	"github.com/pollen-ml/pollen/tensor"
)

// DumpVariable is the name of the environment variable with the directory into which Dump writes.
// If it is not set, nothing is written.
const DumpVariable = "POLLEN_TEST_DUMP"

// The limits of what Dump writes: the dumps of a process, the bytes of all files in the directory,
// of an array, of a text, and of the list of all failures.
const (
	maxDumps      = 40
	maxDumpBytes  = 8 << 20
	maxArrayBytes = 1 << 20
	maxTextBytes  = 64 << 10
	minDumpBytes  = 64 << 10 // a dump is left out when fewer are left
)

// dumpList is the file to which each failure adds a line.
const dumpList = "failures.txt"

var dumped struct {
	sync.Mutex
	count int
}

// Dump writes the details of a failed comparison to the directory that DumpVariable names:
// NAME.txt, and, if err is Close's or Same's, NAME.got.npy and NAME.want.npy, where NAME is the
// test's name. A line is added to failures.txt even if the limits leave no room for more. The
// device may be nil; about, which may be nil, adds lines to the text.
func Dump(t testing.TB, err error, device tensor.Device, about func() []string) {
	t.Helper()
	dir := os.Getenv(DumpVariable)
	if dir == "" || err == nil {
		return
	}
	dumped.Lock()
	defer dumped.Unlock()
	if failed := dump(t.Name(), dir, err, device, about); failed != nil {
		t.Log(failed)
	}
}

var unsafeName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

func dump(test, dir string, err error, device tensor.Device, about func() []string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return errors.Wrap(err, "optest: dump")
	}
	on := "an unknown device"
	if device != nil {
		on = device.Name()
	}
	room := maxDumpBytes - dirBytes(dir)
	line := fmt.Sprintf("%s\t%s\t%s\n", test, on, strings.ReplaceAll(err.Error(), "\n", " "))
	if room > len(line) {
		if err := write(filepath.Join(dir, dumpList), os.O_APPEND, []byte(line)); err != nil {
			return err
		}
	}
	if dumped.count >= maxDumps || room < minDumpBytes {
		return nil
	}
	dumped.count++
	name := strings.TrimLeft(unsafeName.ReplaceAllString(test, "_"), ".-")
	name = name[:min(len(name), 180)]
	file, name, failed := reserve(dir, name)
	if failed != nil {
		return failed
	}
	defer file.Close()
	// Every dump takes a fraction of the remaining bytes, so that later ones have room.
	most := min(maxArrayBytes, room/8)
	lines := []string{"test: " + test, "device: " + on, "error: " + err.Error()}
	var m *mismatch
	if errors.As(err, &m) {
		lines = append(lines, m.describe()...)
		for _, array := range []struct {
			kind   string
			values []float64
		}{{"got", m.got}, {"want", m.want}} {
			content, first, last, dtype, err := npy(array.values, m.shape, m.wrong[0], most)
			if err != nil {
				return errors.Wrap(err, "optest: dump")
			}
			path := name + "." + array.kind + ".npy"
			if err := write(filepath.Join(dir, path), os.O_EXCL, content); err != nil {
				return err
			}
			cut := ""
			if last-first < len(array.values) {
				cut = ", CUT: the other elements are left out"
			}
			lines = append(lines, fmt.Sprintf("file %s: %v, elements %d to %d of %d%s", path, dtype, first, last, len(array.values), cut))
		}
	}
	if about != nil {
		lines = append(lines, about()...)
	}
	text := strings.Join(lines, "\n") + "\n"
	if limit := min(maxTextBytes, room/8); len(text) > limit {
		text = text[:limit] + "\nCUT: the text is longer\n"
	}
	_, failed = io.WriteString(file, text)
	return errors.Wrap(failed, "optest: dump")
}

// reserve creates NAME.txt or, if it exists, NAME-2.txt and so on, and returns the name.
func reserve(dir, name string) (*os.File, string, error) {
	for number := 1; ; number++ {
		numbered := name
		if number > 1 {
			numbered = fmt.Sprintf("%s-%d", name, number)
		}
		file, err := os.OpenFile(filepath.Join(dir, numbered+".txt"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if !errors.Is(err, os.ErrExist) {
			return file, numbered, errors.Wrap(err, "optest: dump")
		}
	}
}

func write(path string, flag int, content []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|flag, 0o644)
	if err != nil {
		return errors.Wrap(err, "optest: dump")
	}
	_, err = file.Write(content)
	if closing := file.Close(); err == nil {
		err = closing
	}
	return errors.Wrap(err, "optest: dump")
}

// dirBytes returns the size of a directory's files.
func dirBytes(dir string) int {
	total := 0
	entries, _ := os.ReadDir(dir) // an unreadable directory counts as empty
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil {
			total += int(info.Size())
		}
	}
	return total
}

// npy returns a file of the values in NumPy's format, version 1.0, as float32 if that is exact, and
// in their shape if they fit. If they need more than most bytes, the file has only the elements
// from first to last-1, which include the one at near.
func npy(values []float64, shape tensor.Shape, near, most int) (content []byte, first, last int, dtype tensor.DType, err error) {
	dtype = tensor.Float32
	for _, v := range values {
		if float64(float32(v)) != v && !math.IsNaN(v) {
			dtype = tensor.Float64
			break
		}
	}
	last = len(values)
	if keep := most / dtype.Size(); keep < last {
		first = max(0, min(near-keep/4, last-keep))
		last = first + keep
	}
	if shape.Elements() != len(values) || last-first < len(values) {
		shape = tensor.Shape{last - first}
	}
	array := npz.Array{Shape: shape, Values: values[first:last]}
	if dtype == tensor.Float32 {
		array.Values = tensor.Convert[float32](values[first:last])
	}
	var out bytes.Buffer
	err = npz.WriteNPY(&out, array)
	return out.Bytes(), first, last, dtype, err
}

// Calls returns a description of the kernels that a device starts for a step of a program, with
// blocks, threads and arguments, or nothing if the device does not implement it.
func Calls(device tensor.Device, program *graph.Program, chains int) []string {
	d, ok := device.(interface {
		Describe(tensor.Workload) []string
	})
	if !ok {
		return nil
	}
	var r recorder
	// Load always returns errRecorded, after it has passed the workload to the recorder.
	_, _ = program.Load(&r, graph.LoadOptions{Chains: chains})
	lines := []string{fmt.Sprintf("calls of a step for %d chains:", chains)}
	return append(lines, d.Describe(r.workload)...)
}

// about describes a row, and the kernels that a device starts for it.
func (c *Case) about(err error, device tensor.Device) []string {
	lines := []string{fmt.Sprintf("row: %s, terms %d, loosened by %v, %d steps", c.Name, c.Terms, max(1, c.Loosen), c.steps())}
	if c.Op != nil {
		lines = append(lines, fmt.Sprintf("op: %s %T%+v", c.Op.Name(), c.Op, c.Op))
	}
	for i, in := range c.Inputs {
		dtype := "float"
		if !in.isFloat() {
			dtype = in.DType.String()
		}
		lines = append(lines, fmt.Sprintf("input %d: %s of shape %v", i, dtype, in.Shape))
	}
	var m *mismatch
	var s *compiledCase
	if errors.As(err, &m) && m.subject != nil {
		s = m.subject
	} else if compiled, failed := c.compile(tensor.Float32, true, !c.NoGradient); failed == nil {
		s = compiled
	}
	if s != nil {
		lines = append(lines, Calls(device, s.program, 1)...)
		lines = append(lines, Calls(device, s.program, 3)...)
		lines = append(lines, fmt.Sprintf("program in %v:", s.dtype), s.program.Dump())
	}
	return lines
}
