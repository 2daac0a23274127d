package memory

import (
	"math"
	"runtime/debug"
	"testing"

	"github.com/pkg/errors"
)

func TestSize(t *testing.T) {
	for bytes, want := range map[int64]string{
		-5: "0 B", 0: "0 B", 1023: "1023 B", 1024: "1 KiB", 3 << 20: "3 MiB", 3329000000: "3.1 GiB", 700 << 20: "700 MiB", math.MaxInt64: "8192 PiB",
	} {
		if got := Size(bytes); got != want {
			t.Errorf("Size(%d) = %s, want %s", bytes, got, want)
		}
	}
}

func TestCheck(t *testing.T) {
	limit := Available()
	if !limit.Known() {
		t.Skip("this system reports no limit of memory")
	}
	advice := func(available int64) []string { return []string{"batch 64", "chains 2"} }
	if err := Check("a test", 1, advice); err != nil {
		t.Errorf("Check of 1 byte: %v", err)
	}
	const exbibyte = 1 << 60
	err := Check("a test", exbibyte, advice)
	var e *Error
	if !errors.As(err, &e) || e.Need != exbibyte || e.Limit.Bytes <= 0 || e.Limit.Bytes >= exbibyte {
		t.Fatalf("Check of 1 EiB: %v", err)
	}
	want := "a test needs 1024 PiB of memory, " + Size(e.Limit.Bytes) + " are available (" + e.Limit.Reason + "); less is needed with batch 64, or chains 2"
	if e.Error() != want {
		t.Errorf("error %q, want %q", e, want)
	}
}

func TestGovern(t *testing.T) {
	if got := softLimit(100, Limit{Bytes: 1000}); got != 1000 {
		t.Errorf("softLimit(100, 1000) = %d, want 1000", got)
	}
	if got := softLimit(100, unlimited); got != math.MaxInt64 {
		t.Errorf("softLimit without a limit = %d", got)
	}
	if !Available().Known() {
		t.Skip("this system reports no limit of memory")
	}
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	limit := govern(0)
	if got := debug.SetMemoryLimit(-1); got != limit || limit < heapBytes() || limit == math.MaxInt64 {
		t.Errorf("govern set %d, and the limit is %d", limit, got)
	}
	if again := govern(limit + limit/1000); again != limit+limit/1000 {
		t.Errorf("govern changed the limit from %d to %d, for a fraction of a percent", limit, again)
	}
}
