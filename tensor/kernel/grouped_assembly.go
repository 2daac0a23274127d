//go:build (amd64 || arm64) && !purego

package kernel

import "unsafe"

// tapLineFast is tapLine in assembly.
func tapLineFast[T Float](line, copies []T, class *tapClass, weights []T, e *epilogue[T]) bool {
	taps, n := len(class.offsets), len(line)
	if !useAssembly[T]() || taps == 0 {
		return false
	}
	scalars := (*float32)(unsafe.Pointer(e)) // three of them, in the order of the fields
	tapSums(addressOf(line, n), n/tapLanes, addressOf(copies, class.reach+n), &class.offsets[0], addressOf(weights, taps), taps, scalars)
	return true
}

// tapProductsFast is tapProducts in assembly, a few taps at a time.
func tapProductsFast[T Float](sums, line, copies []T, class *tapClass, add bool) bool {
	taps, n, most := len(class.offsets), len(line), tapsTogether()
	if !useAssembly[T]() {
		return false
	}
	from, products := addressOf(copies, class.reach+n), addressOf(line, n)
	for tap := 0; tap < taps; tap += most {
		some := min(most, taps-tap)
		tapProductsOf(addressOf(sums[tap:], some), products, n/tapLanes, from, &class.offsets[tap], some, add)
	}
	return true
}

// These declarations fail to compile if the epilogue is not in the order in which the assembly
// reads it.
var (
	_ = [1]int{}[unsafe.Offsetof(epilogue[float32]{}.bias)]
	_ = [1]int{}[unsafe.Offsetof(epilogue[float32]{}.floor)-4]
	_ = [1]int{}[unsafe.Offsetof(epilogue[float32]{}.ceiling)-8]
)
