package emulator

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/cuda/emulator/ptx"
	"github.com/pollen-ml/pollen/cuda/kernels"
)

// translated returns tasks that translate PTX to C++ and compile it: all PTX, or only files that
// were added. It translates the variant for programmatic dependent launch, whose instructions
// include the plain one's.
//
// Texts are cut into units of some 150 KB, since a compiler needs more than linear time for a
// large file, and units compile in parallel.
func (c *toolchain) translated(source string, all bool) (tasks []func() (string, error), err error) {
	headers, err := contents(source, "*.h", "ptx/*.h")
	if err != nil {
		return nil, err
	}
	files, err := kernels.Files()
	if err != nil {
		return nil, errors.WithMessage(err, "emulator")
	}
	for _, f := range files {
		if !all && !f.Added {
			continue
		}
		units, err := ptx.Translate(f.Name, kernels.Dependent(f.Text), f.Text)
		if err != nil {
			return nil, errors.WithMessage(err, "emulator")
		}
		for _, unit := range units {
			tasks = append(tasks, func() (string, error) { return c.compileUnit(source, unit, headers) })
		}
	}
	return tasks, nil
}

// Replay builds programs that replay recordings with the kernels of any PTX text.
type Replay struct {
	c       *toolchain
	source  string
	headers []byte
	objects []string // everything except the kernels
}

// NewReplay compiles everything that does not depend on the text. The test is skipped if there is
// no compiler.
func NewReplay(t testing.TB) *Replay {
	t.Helper()
	from := dirs(t)
	r := &Replay{source: from[0]}
	// Code that runs once is not worth optimising.
	compiler, err := newToolchain(findCompiler(t), append(slices.Clone(flags), "-O0")...)
	if err != nil {
		t.Fatal(err)
	}
	r.c = compiler
	if r.headers, err = contents(r.source, "*.h", "ptx/*.h"); err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, name := range []string{"asynchronous.cpp", "block.cpp", "fiber.cpp", "group.cpp", "kernel.cpp", "matrix.cpp", "replay/replay.cpp"} {
		paths = append(paths, filepath.Join(r.source, name))
	}
	unlock, err := lock(filepath.Join(r.c.cache, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	tasks, err := r.c.sources(from[:], paths, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.objects, err = objects(tasks); err != nil {
		t.Fatal(err)
	}
	return r
}

// Program compiles a PTX text.
func (r *Replay) Program(text string) (Program, error) {
	units, err := ptx.Translate("text.ptx", text)
	if err != nil {
		return "", errors.WithMessage(err, "emulator")
	}
	var tasks []func() (string, error)
	for _, unit := range units {
		tasks = append(tasks, func() (string, error) { return r.c.compileUnit(r.source, unit, r.headers) })
	}
	path, err := r.c.linked("replay-ptx", tasks, r.objects)
	return Program(path), err
}

// Program replays recordings.
type Program string

// Run replays a recording, in at most seconds of processor time, and returns the final contents of
// all buffers, one after the other, each chain by chain. An error includes the process's output.
func (p Program) Run(t testing.TB, recording *Recording, seconds int) ([]byte, error) {
	t.Helper()
	results := filepath.Join(t.TempDir(), "results")
	if err := p.replay(t, recording, seconds, results); err != nil {
		return nil, err
	}
	memory, err := os.ReadFile(results)
	return memory, errors.Wrap(err, "emulator")
}

// Repeats reports whether the first buffer of each launch has the given contents in the end. It
// stops at the first launch for which that is not so. Errors are as for Run.
func (p Program) Repeats(t testing.TB, recording *Recording, contents [][]byte, seconds int) (bool, error) {
	t.Helper()
	expected := filepath.Join(t.TempDir(), "expected")
	if err := os.WriteFile(expected, bytes.Join(contents, nil), 0o644); err != nil {
		return false, errors.Wrap(err, "emulator")
	}
	err := p.replay(t, recording, seconds, "", expected)
	const differs = 3 // replay.cpp's exit code
	var ended *exec.ExitError
	if errors.As(err, &ended) && ended.ExitCode() == differs {
		return false, nil
	}
	return err == nil, err
}

// replay runs the program with a recording and further files as its arguments.
func (p Program) replay(t testing.TB, recording *Recording, seconds int, files ...string) error {
	t.Helper()
	recorded := filepath.Join(t.TempDir(), "recording")
	if err := os.WriteFile(recorded, recording.out.Bytes(), 0o644); err != nil {
		return errors.Wrap(err, "emulator")
	}
	arguments := append([]string{"-c", `ulimit -t "$0" && exec "$@"`, strconv.Itoa(seconds), string(p), recorded}, files...)
	said, err := exec.Command("sh", arguments...).CombinedOutput()
	return errors.Wrap(err, string(said))
}

// contents returns the concatenation of a directory's files.
func contents(dir string, patterns ...string) ([]byte, error) {
	var all []byte
	for _, pattern := range patterns {
		paths, err := files(dir, pattern)
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, errors.Wrap(err, "emulator")
			}
			all = append(all, text...)
		}
	}
	return all, nil
}

// compileUnit compiles a unit, unless it was compiled before with the same headers. Unlike compile,
// it decides that without running the preprocessor.
//
// The name of the object contains a digest of the text, so that a change of one kernel recompiles
// its unit only, and branches that are tested in turn share the cache.
func (c *toolchain) compileUnit(source string, unit ptx.Unit, headers []byte) (string, error) {
	object := filepath.Join(c.cache, unit.Name+"-"+digest(unit.Text, headers)+".o")
	if _, err := os.Stat(object); err == nil {
		return object, nil
	}
	scratch, err := os.MkdirTemp(c.cache, "work")
	if err != nil {
		return "", errors.Wrap(err, "emulator")
	}
	defer os.RemoveAll(scratch)
	from, to := filepath.Join(scratch, unit.Name+".cpp"), filepath.Join(scratch, unit.Name+".o")
	if err := os.WriteFile(from, unit.Text, 0o644); err != nil {
		return "", errors.Wrap(err, "emulator")
	}
	arguments := append(append([]string{"-I" + source}, c.flags...), "-c", from, "-o", to)
	if _, err := c.run(arguments...); err != nil {
		return "", shortened(err)
	}
	return object, errors.Wrap(os.Rename(to, object), "emulator")
}

// shortened cuts a compiler's message after its first lines: later errors follow from earlier ones.
func shortened(err error) error {
	lines := bytes.SplitN([]byte(err.Error()), []byte("\n"), 12)
	return errors.New(strings.TrimSpace(string(bytes.Join(lines[:min(len(lines), 11)], []byte("\n")))))
}
