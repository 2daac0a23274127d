package emulator

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"
)

// faulty is a recording of a kernel of testdata on two blocks of 64 threads: (y, x, n) of two chains.
func faulty(kernel string) *Recording {
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

// Every mistake is found by what is there to find it; what is right passes.
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
	} {
		text, err := faulty(row.kernel).Run(t, row.by, "testdata")
		if row.says == "" && err != nil || row.says != "" && (err == nil || !strings.Contains(text, row.says)) {
			t.Errorf("%s under the sanitizer %s: wants %q, got %v:\n%s", row.kernel, row.by, row.says, err, text)
		}
	}
}
