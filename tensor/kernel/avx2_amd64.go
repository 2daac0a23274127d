//go:build !purego

package kernel

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

//go:generate go run -C generate main.go -out ../avx2_amd64.s -stubs ../avx2_stubs_amd64.go -pkg kernel

// vector is the number of float32 in an AVX register.
const vector = 8

// useAVX2 selects the assembly. Tests clear it to reach the portable path.
var useAVX2 = cpu.X86.HasAVX2 && cpu.X86.HasFMA

// fast reports whether T takes the assembly: any float32, named or not.
func fast[T Float]() bool {
	var zero T
	return useAVX2 && unsafe.Sizeof(zero) == 4
}

// first returns the address of the first of n elements; it panics when the
// slice has fewer, so that the assembly, which checks nothing, stays inside.
func first[T Float](x []T, n int) *float32 {
	return (*float32)(unsafe.Pointer(unsafe.SliceData(x[:n])))
}

func multiplyFast[T Float](rows, depth int, a left[T], b, c []T, stride int, bias []T, f flags) bool {
	if !fast[T]() {
		return false
	}
	biases := 0
	if f&flagBiasRow != 0 {
		biases = rows
	} else if f&flagBiasColumn != 0 {
		biases = panelColumns
	}
	pa := first(a.data, (rows-1)*a.rowStride+(depth-1)*a.depthStride+1)
	pb := first(b, depth*panelColumns)
	pc := first(c, (rows-1)*stride+panelColumns)
	pv := first(bias, biases)
	switch rows {
	case 1:
		multiply1(depth, pa, a.rowStride, a.depthStride, pb, pc, stride, pv, int(f))
	case 2:
		multiply2(depth, pa, a.rowStride, a.depthStride, pb, pc, stride, pv, int(f))
	case 3:
		multiply3(depth, pa, a.rowStride, a.depthStride, pb, pc, stride, pv, int(f))
	case 4:
		multiply4(depth, pa, a.rowStride, a.depthStride, pb, pc, stride, pv, int(f))
	case 5:
		multiply5(depth, pa, a.rowStride, a.depthStride, pb, pc, stride, pv, int(f))
	default:
		multiply6(depth, pa, a.rowStride, a.depthStride, pb, pc, stride, pv, int(f))
	}
	return true
}

func multiplyTableFast[T Float](data []T, rowOffsets, depthOffsets []int32, b, c []T, stride int, accumulate bool) bool {
	if !fast[T]() {
		return false
	}
	rows, depth := len(rowOffsets), len(depthOffsets)
	pd := first(data, int(rowOffsets[rows-1])+int(depthOffsets[depth-1])+1)
	pb := first(b, depth*panelColumns)
	pc := first(c, (rows-1)*stride+panelColumns)
	pr, pk := &rowOffsets[0], &depthOffsets[0]
	switch rows {
	case 1:
		multiplyTable1(depth, pd, pr, pk, pb, pc, stride, accumulate)
	case 2:
		multiplyTable2(depth, pd, pr, pk, pb, pc, stride, accumulate)
	case 3:
		multiplyTable3(depth, pd, pr, pk, pb, pc, stride, accumulate)
	case 4:
		multiplyTable4(depth, pd, pr, pk, pb, pc, stride, accumulate)
	case 5:
		multiplyTable5(depth, pd, pr, pk, pb, pc, stride, accumulate)
	default:
		multiplyTable6(depth, pd, pr, pk, pb, pc, stride, accumulate)
	}
	return true
}

func packColumnsFast[T Float](panel, source []T, stride, depth, columns int) bool {
	if !fast[T]() || depth < vector {
		return false
	}
	from := first(source, (columns-1)*stride+depth)
	to := first(panel, depth*panelColumns)
	whole := depth &^ (vector - 1)
	rest := depth - vector // the last eight, some of them a second time
	for half := range 2 {
		var offsets [vector]int
		for j := range offsets {
			offsets[j] = min(half*vector+j, columns-1) * stride
		}
		part := offset(to, half*vector)
		transpose(part, from, &offsets, whole)
		if whole < depth {
			transpose(offset(part, rest*panelColumns), offset(from, rest), &offsets, vector)
		}
	}
	return true
}

func offset(p *float32, elements int) *float32 {
	return (*float32)(unsafe.Add(unsafe.Pointer(p), 4*elements))
}

func packWindowFast[T Float](panel, padded []T, p *pixelPanel, taps []int32) bool {
	if !fast[T]() {
		return false
	}
	depth := len(taps)
	to := first(panel, depth*panelColumns)
	from := first(padded, int(p.pixels[panelColumns-1])+int(taps[depth-1])+1)
	if p.simple {
		windowRuns(to, from, &p.runs, &taps[0], depth)
	} else {
		windowGather(to, from, &p.pixels, &taps[0], depth)
	}
	return true
}

// vectorLength is the number of outputs of 2 x 2 pooling computed together.
func vectorLength[T Float]() int {
	if fast[T]() {
		return vector
	}
	return 1
}

func maxLineFast[T Float](y, upper, lower []T) bool {
	n := len(y)
	if n < vector || !fast[T]() {
		return false
	}
	maxLineAVX2(first(y, n), first(upper, 2*n), first(lower, 2*n), n)
	return true
}

func maxLineBackwardFast[T Float](dx, x, gradient []T, width int) bool {
	n := len(gradient)
	if n < vector || !fast[T]() {
		return false
	}
	maxLineBackwardAVX2(first(dx, 2*n), first(dx[width:], 2*n), first(x, 2*n), first(x[width:], 2*n), first(gradient, n), n)
	return true
}

func expm1Fast(y, x []float32) bool {
	if !useAVX2 {
		return false
	}
	whole := len(x) &^ (vector - 1)
	if whole > 0 {
		expm1AVX2(first(y, whole), first(x, whole), whole)
	}
	if whole < len(x) {
		var rest [vector]float32
		copy(rest[:], x[whole:])
		expm1AVX2(&rest[0], &rest[0], vector)
		copy(y[whole:], rest[:])
	}
	return true
}

func scatterFast[T Float](p *scatterPlan, rows, depth int, filter, panel, target []T, left, right int) bool {
	if !fast[T]() {
		return false
	}
	taps := len(p.offsets)
	every := p.shape.K * rows
	filters := first(filter, (taps-1)*every+depth*rows)
	pixels := first(panel, depth*panelColumns)
	reach := (rows-1)*p.plane + int(p.offsets[taps-1]) + halfPanel
	c0, c1 := first(target[left:], reach), first(target[right:], reach)
	skip := every - depth*rows
	switch rows {
	case 1:
		scatter1(depth, taps, filters, skip, pixels, c0, c1, &p.offsets[0], p.plane)
	case 2:
		scatter2(depth, taps, filters, skip, pixels, c0, c1, &p.offsets[0], p.plane)
	case 3:
		scatter3(depth, taps, filters, skip, pixels, c0, c1, &p.offsets[0], p.plane)
	case 4:
		scatter4(depth, taps, filters, skip, pixels, c0, c1, &p.offsets[0], p.plane)
	case 5:
		scatter5(depth, taps, filters, skip, pixels, c0, c1, &p.offsets[0], p.plane)
	default:
		scatter6(depth, taps, filters, skip, pixels, c0, c1, &p.offsets[0], p.plane)
	}
	return true
}
