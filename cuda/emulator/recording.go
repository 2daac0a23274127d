package emulator

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Recording has launches with their memory, to be replayed by a program that runs under a
// sanitizer. Every buffer gets separate memory for each chain.
type Recording struct {
	Early bool // launches that are added begin before their predecessors have ended, if the kernels are PTX
	out   bytes.Buffer
}

// Buffer is a launch's buffer. Without contents it is filled with NaN.
type Buffer struct {
	Shared   bool // by all chains
	Bytes    int
	Contents []byte
}

// Argument is a kernel's argument: the index of one of the launch's buffers, or a scalar's bits.
type Argument struct {
	Buffer bool
	Value  uint64
	Bytes  int // of a scalar in a row
}

// Call is one launch of a kernel.
type Call struct {
	Symbol    string
	Blocks    [2]int
	Threads   int
	Shared    int // bytes of dynamic shared memory
	Arguments []Argument
	Ends      []int // for a kernel that takes rows: for each row, the first block after the row's blocks
}

// Add records calls on the same buffers, as numbers of 32 bits and 64 bits in little endian, which
// source/replay/replay.cpp reads in the same order. A recording has no version: the program that
// reads it is built from the same checkout.
func (r *Recording) Add(chains int, buffers []Buffer, calls []Call) {
	numbers := func(values ...int) {
		for _, v := range values {
			r.out.Write(binary.LittleEndian.AppendUint32(nil, uint32(v)))
		}
	}
	flag := func(v bool) {
		if v {
			r.out.WriteByte(1)
		} else {
			r.out.WriteByte(0)
		}
	}
	numbers(chains, len(buffers))
	for _, b := range buffers {
		flag(b.Shared)
		flag(b.Contents != nil)
		r.out.Write(binary.LittleEndian.AppendUint64(nil, uint64(b.Bytes)))
		r.out.Write(b.Contents)
	}
	numbers(len(calls))
	for _, c := range calls {
		numbers(len(c.Symbol))
		r.out.WriteString(c.Symbol)
		numbers(c.Blocks[0], c.Blocks[1], c.Threads, c.Shared, len(c.Arguments))
		for _, a := range c.Arguments {
			flag(a.Buffer)
			r.out.Write(binary.LittleEndian.AppendUint64(nil, a.Value))
			numbers(a.Bytes)
		}
		flag(r.Early)
		numbers(len(c.Ends))
		numbers(c.Ends...)
	}
}

// Bytes returns the size of the recording.
func (r *Recording) Bytes() int { return r.out.Len() }

// Sanitizer selects the sanitizer of a replay.
type Sanitizer string

// The sanitizers. Plain is none: only the emulator's own checks. Address finds accesses outside
// memory, and undefined behaviour. Thread finds races: accesses of two threads to the same memory,
// one of them a write, that no barrier orders.
const (
	Plain   Sanitizer = "plain"
	Address Sanitizer = "address"
	Thread  Sanitizer = "thread"
)

// sanitizerFlags returns the compiler flags for kernels, the emulator and the linker. The emulator
// itself is compiled without the sanitizer, but with calls that inform it.
func sanitizerFlags(s Sanitizer) (kernel, emulator, linker []string) {
	switch s {
	case Address:
		kernel = []string{"-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g1"}
		return kernel, []string{"-DPOLLEN_ADDRESS_SANITIZER"}, kernel
	case Thread:
		kernel = []string{"-fsanitize=thread", "-g1"}
		return kernel, []string{"-DPOLLEN_THREAD_SANITIZER"}, kernel
	}
	return nil, nil, nil
}

// Run replays the recording with the kernels in dir, or Pollen's if it is empty. It returns the
// process's output and error. The test is skipped if there is no compiler.
func (r *Recording) Run(t testing.TB, s Sanitizer, dir string) (string, error) {
	t.Helper()
	program := replayer(t, s, dir)
	path := filepath.Join(t.TempDir(), "recording")
	if err := os.WriteFile(path, r.out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, path)
	options := ""
	if symbolizer, err := exec.LookPath("llvm-symbolizer-19"); err == nil {
		options = ":external_symbolizer_path=" + symbolizer
	}
	command.Env = append(os.Environ(), "TSAN_OPTIONS=halt_on_error=1"+options, "ASAN_OPTIONS=detect_stack_use_after_return=0:detect_leaks=0"+options)
	text, err := command.CombinedOutput()
	return string(text), err
}

// replayer builds the program that replays recordings under a sanitizer, with the kernels in dir,
// and returns its path.
func replayer(t testing.TB, s Sanitizer, dir string) string {
	t.Helper()
	compiler := findCompiler(t)
	needRuntime(t, compiler, s)
	from := dirs(t)
	dir = cmp.Or(dir, from[1])
	kernelFlags, emulatorFlags, linkerFlags := sanitizerFlags(s)
	program, err := func() (string, error) {
		c, err := newToolchain(compiler, flags...)
		if err != nil {
			return "", err
		}
		cuda, err := files(dir, "*.cu")
		if err != nil {
			return "", err
		}
		var sources []string
		for _, name := range []string{"asynchronous.cpp", "block.cpp", "fiber.cpp", "kernel.cpp", "replay/replay.cpp"} {
			sources = append(sources, filepath.Join(from[0], name))
		}
		tasks, err := c.sources(from[:], sources, emulatorFlags)
		if err != nil {
			return "", err
		}
		kernels, err := c.kernels(from[:], cuda, kernelFlags)
		if err != nil {
			return "", err
		}
		return c.linked("replay-"+string(s), append(tasks, kernels...), nil, linkerFlags...)
	}()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// needRuntime skips the test if the compiler comes without the runtime library of a sanitizer,
// which is a separate package on Debian. Where RequireVariable is set, that is a failure.
func needRuntime(t testing.TB, compiler string, s Sanitizer) {
	t.Helper()
	_, _, linker := sanitizerFlags(s)
	if linker == nil {
		return
	}
	source := filepath.Join(t.TempDir(), "empty.cpp")
	if err := os.WriteFile(source, []byte("int main() { return 0; }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	text, err := exec.Command(compiler, append([]string{source, "-o", source + ".out"}, linker...)...).CombinedOutput()
	switch {
	case err == nil:
	case os.Getenv(RequireVariable) != "":
		t.Fatalf("%s cannot link the %s sanitizer: %s", compiler, s, text)
	default:
		t.Skipf("%s cannot link the %s sanitizer: install its runtime, libclang-rt-19-dev on Debian", compiler, s)
	}
}
