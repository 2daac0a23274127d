package emulator

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/internal/testenv"
)

// faulty records a kernel of testdata on two blocks of 64 threads, with arguments (y, x, n), for
// two chains. A kernel whose name begins with "grouped" runs on a block of 128 threads, with ones
// in bf16 as x.
func faulty(kernel string) *Recording {
	if strings.HasPrefix(kernel, "grouped") {
		const bytes = 4096
		r := new(Recording)
		ones := []byte(strings.Repeat("\x80\x3f", bytes/2))
		r.Add(2, []Buffer{{Bytes: bytes}, {Bytes: bytes, Contents: ones}}, []Call{{
			Symbol: kernel, Blocks: [2]int{1, 1}, Threads: 128, Shared: bytes + 8,
			Arguments: []Argument{{Buffer: true, Value: 0}, {Buffer: true, Value: 1}, {Value: 128}},
		}})
		return r
	}
	const n = 128
	x := make([]byte, 4*n)
	for i := range n {
		binary.LittleEndian.PutUint32(x[4*i:], math.Float32bits(float32(i)))
	}
	r := new(Recording)
	r.Add(2, []Buffer{{Bytes: len(x)}, {Bytes: len(x), Contents: x}}, []Call{{
		Symbol: kernel, Blocks: [2]int{2, 1}, Threads: 64, Arguments: []Argument{{Buffer: true, Value: 0}, {Buffer: true, Value: 1}, {Value: n}},
	}})
	return r
}

// TestFaultsAreFound: every mistake is found by the check that is meant to find it, and correct
// kernels pass.
func TestFaultsAreFound(t *testing.T) {
	for _, row := range []struct {
		kernel string
		by     Sanitizer
		says   string
	}{
		{"right_f32", Plain, ""},
		{"right_f32", Address, ""},
		{"right_f32", Thread, ""},
		{"stack_f32", Address, ""},
		{"stack_f32", Thread, ""},
		{"no_barrier_f32", Thread, "data race"},
		{"warp_only_f32", Thread, "data race"},
		{"same_place_f32", Thread, "data race"},
		{"copied_f32", Plain, ""},
		{"copied_f32", Thread, ""},
		{"copy_without_wait_f32", Plain, "waits in barrier"},
		{"copy_without_barrier_f32", Thread, "data race"},
		{"copy_too_early_f32", Thread, "data race"},
		{"outside_f32", Address, "AddressSanitizer"},
		{"outside_shared_f32", Address, "index 64 out of bounds"},
		{"unaligned_f32", Address, "misaligned address"},
		{"divergent_f32", Plain, "block (0, 0, 0), thread (0, 0, 0) waits in barrier for others that do not come: of 64 threads 24 have ended, 40 wait"},
		{"mixed_f32", Plain, "mixed_f32: block (0, 0, 0), thread"},
		{"grouped_f32", Plain, ""},
		{"grouped_f32", Address, ""},
		{"grouped_f32", Thread, ""},
		{"grouped_no_fence_f32", Plain, "multiplies without a fence"},
		{"grouped_no_commit_f32", Plain, "waits in barrier"},
		{"grouped_no_wait_f32", Plain, "waits in barrier"},
		{"grouped_no_copy_wait_f32", Plain, "waits in barrier"},
		{"grouped_no_order_f32", Plain, "no fence after it was initialised"},
		{"grouped_no_barrier_f32", Plain, "not initialised"},
		{"grouped_too_early_f32", Thread, "data race"},
		{"grouped_two_operands_f32", Plain, "describes other operands"},
		{"grouped_swizzled_f32", Plain, "with a swizzle"},
		{"grouped_too_many_bytes_f32", Plain, "grouped_too_many_bytes_f32: block (0, 0, 0), thread (0, 0, 0) waits in an mbarrier for others that do not come"},
		{"grouped_trapped_f32", Plain, "grouped_trapped_f32: block (0, 0, 0), thread (3, 0, 0) traps"},
	} {
		t.Run(fmt.Sprintf("%s/%s", row.kernel, row.by), func(t *testing.T) {
			if row.by != Plain {
				testenv.NeedsAll(t, "sanitizers are slow to compile and to run")
			}
			text, err := faulty(row.kernel).Run(t, row.by, "testdata")
			if row.says == "" && err != nil || row.says != "" && (err == nil || !strings.Contains(text, row.says)) {
				t.Errorf("got %v, want %q:\n%s", err, row.says, text)
			}
		})
	}
}

// TestUnchangedSourcesAreNotPreprocessed: a source is compiled if it or a header has changed.
// Otherwise the compiler is not started.
func TestUnchangedSourcesAreNotPreprocessed(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	c, err := newToolchain(findCompiler(t), flags...)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	made := func(name, text string) (string, error) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		tasks, err := c.sources([]string{dir}, []string{filepath.Join(dir, "value.cpp")}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return tasks[0]()
	}
	const header, source = "#define VALUE 1\n", "#include \"value.h\"\nint value() { return VALUE; }\n"
	if err := os.WriteFile(filepath.Join(dir, "value.h"), []byte(header), 0o644); err != nil {
		t.Fatal(err)
	}
	first, err := made("value.cpp", source)
	if err != nil {
		t.Fatal(err)
	}
	compiler := c.compiler
	c.compiler = "no-compiler"
	if again, err := made("value.h", header); err != nil || again != first {
		t.Errorf("unchanged: %s, %v, want %s", again, err, first)
	}
	for _, changed := range [][2]string{{"value.h", "#define VALUE 2\n"}, {"value.cpp", source + "int other() { return VALUE; }\n"}} {
		if _, err := made(changed[0], changed[1]); err == nil {
			t.Errorf("%s has changed, and nothing was compiled", changed[0])
		}
		c.compiler = compiler
		if other, err := made(changed[0], changed[1]); err != nil || other == first {
			t.Errorf("%s has changed: %s, %v", changed[0], other, err)
		}
		c.compiler = "no-compiler"
	}
}

// TestCheckoutsShareTheCache: objects compiled in one checkout are reused in another, unless a
// header differs.
func TestCheckoutsShareTheCache(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	c, err := newToolchain(findCompiler(t), flags...)
	if err != nil {
		t.Fatal(err)
	}
	compile := func(header string) string {
		dir := filepath.Join(t.TempDir(), "kernels")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "value.h"), []byte(header), 0o644); err != nil {
			t.Fatal(err)
		}
		object, err := c.compile([]string{dir}, "value", []byte("#include \"value.h\"\nint value() { return VALUE; }\nconst char* file() { return FILE; }\n"), nil)
		if err != nil {
			t.Fatal(err)
		}
		return object
	}
	const header = "#define FILE __FILE__\n#define VALUE "
	one, same, other := compile(header+"1\n"), compile(header+"1\n"), compile(header+"2\n")
	if one != same || one == other {
		t.Errorf("compiled %s in one folder, %s in another, %s of another text", one, same, other)
	}
}
