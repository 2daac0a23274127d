package tensor

import "testing"

func TestAlignedBytes(t *testing.T) {
	for n := range 200 {
		if memory := alignedBytes(n); len(memory) != n || cap(memory) != n || addressOf(memory)%Alignment != 0 && n > 0 {
			t.Errorf("%d bytes: length %d, capacity %d, address %#x", n, len(memory), cap(memory), addressOf(memory))
		}
	}
	for _, n := range []int{hugePageBytes, 2*hugePageBytes + 5} {
		memory := alignedBytes(n)
		if len(memory) != n || cap(memory) != n || addressOf(memory)%hugePageBytes != 0 {
			t.Errorf("%d bytes: length %d, capacity %d, address %#x", n, len(memory), cap(memory), addressOf(memory))
		}
		for i, b := range memory {
			if b != 0 {
				t.Fatalf("byte %d of %d is %d", i, n, b)
			}
		}
	}
}

// The slices of one allocation do not overlap.
func TestManyBytes(t *testing.T) {
	for _, n := range []int{0, 5, Alignment, hugePageBytes - 1} {
		many := alignedSlices(3, n)
		for i, part := range many {
			if len(part) != n || cap(part) != n || n > 0 && addressOf(part)%Alignment != 0 {
				t.Fatalf("part %d of %d bytes: length %d, capacity %d, address %#x", i, n, len(part), cap(part), addressOf(part))
			}
			for j := range part {
				part[j]++
			}
		}
		for i, part := range many {
			for j, b := range part {
				if b != 1 {
					t.Fatalf("byte %d of part %d is %d: parts share memory", j, i, b)
				}
			}
		}
	}
}
