package memory

import (
	"math"
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
