package tensor

// hugePageBytes is a large page of amd64, and of arm64 where small ones have 4 KiB.
const hugePageBytes = 2 << 20

// alignedSlices is alignedBytes n times, in one piece of memory.
func alignedSlices(n, bytes int) [][]byte {
	each := Align(bytes)
	all := alignedBytes(n * each)
	many := make([][]byte, n)
	for i := range many {
		many[i] = all[i*each:][:bytes:bytes]
	}
	return many
}

// alignedBytes returns zeroed memory that begins on a multiple of Alignment. Much memory begins on
// a large page, and the system is asked for such pages, where it has them: kernels go through many
// megabytes in each step, whose small pages are more than a processor remembers the places of.
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
