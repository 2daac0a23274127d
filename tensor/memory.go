package tensor

// hugePageBytes is the size of a huge page on amd64, and on arm64 with base pages of 4 KiB.
const hugePageBytes = 2 << 20

// alignedSlices returns n zeroed slices of the given size, as alignedBytes makes them, from one
// allocation.
func alignedSlices(n, bytes int) [][]byte {
	each := Align(bytes)
	all := alignedBytes(n * each)
	many := make([][]byte, n)
	for i := range many {
		many[i] = all[i*each:][:bytes:bytes]
	}
	return many
}

// alignedBytes returns zeroed memory that starts at a multiple of Alignment. Memory of at least
// hugePageBytes starts on a huge page and asks the system for huge pages: kernels sweep many
// megabytes in each step, and with base pages of 4 KiB these have more page table entries than the
// TLB holds.
func alignedBytes(n int) []byte {
	alignment := Alignment
	if n >= hugePageBytes {
		alignment = hugePageBytes
	}
	raw := make([]byte, n+alignment)
	skip := (alignment - int(addressOf(raw)%uintptr(alignment))) % alignment
	memory := raw[skip : skip+n : skip+n]
	if n >= hugePageBytes {
		adviseHugePages(memory)
	}
	return memory
}
