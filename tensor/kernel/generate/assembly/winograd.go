package assembly

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// WinogradAVX2 describes the functions of the file of that name: transforms of patches, and the layout that they want.
func WinogradAVX2() { winograd(avx2) }

// WinogradAVX512 describes the same with twice the lanes.
func WinogradAVX512() { winograd(avx512) }

func winograd(t target) {
	ConstraintExpr("!purego")
	for _, a := range algorithms {
		input, filter, spread := a.matrices()
		patches := func(name string, m matrix, product product, finish finishing) {
			transformPatches(t, fmt.Sprintf("winograd%s%d%d", name, a.patch, a.taps), m, a.groups(), product, finish)
		}
		patches("Input", input, rows, store)
		patches("Output", spread.transposed(), columns, storeBiased)
		patches("Filter", filter, rows, store)
		patches("Spread", spread, rows, store)
		patches("Overlap", input.transposed(), columns, storeAdded)
		patches("Gather", filter.transposed(), columns, store)
	}
	interleave(t)
	separate(t)
}

// term is a product of a sum.
type term struct {
	factor float64
	x      VecVirtual
}

// linear writes a sum of products. The first product is one by 1 where there is one.
func (t target) linear(terms []term) VecVirtual {
	first := 0
	for i := range terms {
		if terms[i].factor == 1 {
			first = i
		}
	}
	var v VecVirtual
	if terms[first].factor == 1 {
		v = t.new()
		VMOVAPS(terms[first].x, v)
	} else {
		v = t.scaled(terms[first].factor, terms[first].x)
	}
	for i, s := range terms {
		switch {
		case i == first:
		case s.factor == 1:
			VADDPS(s.x, v, v)
		case s.factor == -1:
			VSUBPS(s.x, v, v)
		default:
			t.addScaled(s.factor, s.x, v)
		}
	}
	return v
}

// scaled is factor x.
func (t target) scaled(factor float64, x VecVirtual) VecVirtual {
	v := t.new()
	if t.lanes == vector {
		VMULPS(t.constant(factor), x, v)
	} else {
		VMULPS_BCST(t.constant(factor), x, v)
	}
	return v
}

// addScaled adds factor x to v.
func (t target) addScaled(factor float64, x, v VecVirtual) {
	if t.lanes == vector {
		VFMADD231PS(t.constant(factor), x, v)
	} else {
		VFMADD231PS_BCST(t.constant(factor), x, v)
	}
}

// constants are those that the file holds: for AVX2 in all lanes of a vector, for AVX-512, which repeats a number by itself, once.
var constants = map[uint32]Mem{}

func (t target) constant(value float64) Mem {
	bits := math.Float32bits(float32(value))
	if m, ok := constants[bits]; ok {
		return m
	}
	m := GLOBL(fmt.Sprintf("winograd_%08x", bits), RODATA|NOPTR)
	copies := 1
	if t.lanes == vector {
		copies = vector
	}
	for i := range copies {
		DATA(i*bytes, U32(bits))
	}
	constants[bits] = m
	return m
}

// exact returns a factor of the terms by which all can be divided without rounding, if possible one that leaves a 1.
func exact(terms []term) float64 {
	for i := range terms {
		rounds := false
		for _, s := range terms {
			ratio := s.factor / terms[i].factor
			rounds = rounds || float64(float32(ratio)) != ratio
		}
		if !rounds {
			return terms[i].factor
		}
	}
	return terms[len(terms)-1].factor
}

// product writes m x, whose elements x loads, and visits the results. The groups are of rows or of columns.
type product func(t target, m matrix, groups [][]int, x func(j int) VecVirtual, emit func(i int, v VecVirtual))

func nonzero(row []float64, x []VecVirtual, parity int) (terms []term) {
	for j := parity; j < len(row); j += 2 {
		if row[j] != 0 {
			terms = append(terms, term{row[j], x[j]})
		}
	}
	return terms
}

// rows is a product whose rows in a group are sums and differences of two: one of even columns, one of odd ones.
func rows(t target, m matrix, groups [][]int, load func(j int) VecVirtual, emit func(i int, v VecVirtual)) {
	x := make([]VecVirtual, len(m[0]))
	for j := range x {
		x[j] = load(j)
	}
	for _, group := range groups {
		if len(group) == 1 {
			i := group[0]
			emit(i, t.linear(append(nonzero(m[i], x, 0), nonzero(m[i], x, 1)...)))
			continue
		}
		var halves [2][]term
		var values [2]VecVirtual
		var scales [2]float64
		for parity := range halves {
			for _, i := range group {
				if halves[parity] == nil {
					halves[parity] = nonzero(m[i], x, parity)
				}
			}
			scales[parity] = halves[parity][0].factor
			if divisor := exact(halves[parity]); parity == 1 || divisor == 1 {
				for j := range halves[parity] {
					halves[parity][j].factor /= divisor
				}
			}
			values[parity] = t.linear(halves[parity])
		}
		for _, i := range group {
			var terms []term
			for parity := range halves {
				if of := nonzero(m[i], x, parity); len(of) > 0 {
					factor := of[0].factor / halves[parity][0].factor
					terms = append(terms, term{factor, values[parity]})
				}
			}
			emit(i, t.linear(terms))
		}
	}
}

// columns is a product in which the columns of a group differ by signs alone, of which there are two patterns.
func columns(t target, m matrix, groups [][]int, load func(j int) VecVirtual, emit func(i int, v VecVirtual)) {
	patterns := map[string]VecVirtual{}
	inputs := make([][]term, len(m))
	x := make([]VecVirtual, len(m[0]))
	for _, group := range groups {
		for _, j := range group {
			x[j] = load(j)
		}
		for i, row := range m {
			var terms []term
			scale := 0.0
			for _, j := range group {
				if row[j] != 0 {
					if scale == 0 {
						scale = row[j]
					}
					terms = append(terms, term{row[j] / scale, x[j]})
				}
			}
			switch {
			case len(terms) == 0:
			case len(terms) == 1:
				inputs[i] = append(inputs[i], term{scale, terms[0].x})
			default:
				pattern := fmt.Sprint(group, terms)
				if _, ok := patterns[pattern]; !ok {
					patterns[pattern] = t.linear(terms)
				}
				inputs[i] = append(inputs[i], term{scale, patterns[pattern]})
			}
		}
	}
	for i, terms := range inputs {
		emit(i, t.linear(terms))
	}
}

// finishing says what happens to results before they are stored.
type finishing int

const (
	store finishing = iota
	storeAdded
	storeBiased
)

// strides address the elements of a row or column, up to thirteen of them, from one pointer or from two.
type strides struct {
	bases  []GPVirtual // of the first element and of the ninth
	single GPVirtual   // the distance, and odd multiples of it
	odd    map[int]GPVirtual
}

func newStrides(base, single GPVirtual, count int) strides {
	s := strides{[]GPVirtual{base}, single, map[int]GPVirtual{}}
	for _, n := range []int{3, 5, 7} {
		if n >= count {
			break
		}
		r := GP64()
		switch n {
		case 3:
			LEAQ(Mem{Base: single, Index: single, Scale: 2}, r)
		case 5:
			LEAQ(Mem{Base: single, Index: single, Scale: 4}, r)
		case 7:
			LEAQ(Mem{Base: s.odd[3], Index: single, Scale: 4}, r)
		}
		s.odd[n] = r
	}
	if count > 8 {
		ninth := GP64()
		LEAQ(Mem{Base: base, Index: single, Scale: 8}, ninth)
		s.bases = append(s.bases, ninth)
	}
	return s
}

func (s strides) at(i int) Mem {
	base := s.bases[i/8]
	switch i %= 8; i {
	case 0:
		return Mem{Base: base}
	case 1, 2, 4:
		return Mem{Base: base, Index: s.single, Scale: uint8(i)}
	case 6:
		return Mem{Base: base, Index: s.odd[3], Scale: 2}
	}
	return Mem{Base: base, Index: s.odd[i], Scale: 1}
}

func (s strides) advance(step Op) {
	for _, base := range s.bases {
		ADDQ(step, base)
	}
}

// transformPatches writes m x m' for patches x: columns first, then the rows of what that gives.
func transformPatches(t target, name string, m matrix, groups [][]int, product product, finish finishing) {
	name += t.suffix
	TEXT(name, NOSPLIT, "func(to, from, temporary *float32, toRow, toColumn, toPatch, fromRow, fromColumn, fromPatch, count int)")
	Pragma("noescape")
	Doc(name + " is transform for one matrix.")
	height, width := len(m), len(m[0])
	size, epilogue := t.lanes*bytes, 2*t.lanes*bytes
	from, to := Load(Param("from"), GP64()).(GPVirtual), Load(Param("to"), GP64()).(GPVirtual)
	count := Load(Param("count"), GP64())

	Label("patch")
	half := Load(Param("temporary"), GP64())
	ADDQ(U32(uint32(epilogue)), half)
	column, left := GP64(), GP64()
	MOVQ(from, column)
	source := newStrides(column, loadBytes("fromRow"), width)
	step := loadBytes("fromColumn")
	MOVQ(U32(uint32(width)), left)
	Label("column")
	load := func(at Mem) VecVirtual {
		v := t.new()
		VMOVUPS(at, v)
		return v
	}
	product(t, m, groups, func(i int) VecVirtual { return load(source.at(i)) }, func(i int, v VecVirtual) { VMOVUPS(v, Mem{Base: half, Disp: i * width * size}) })
	source.advance(step)
	ADDQ(U32(uint32(size)), half)
	DECQ(left)
	JNZ(LabelRef("column"))

	half = Load(Param("temporary"), GP64())
	biases := GP64()
	MOVQ(half, biases)
	ADDQ(U32(uint32(epilogue)), half)
	row := GP64()
	MOVQ(to, row)
	target := newStrides(row, loadBytes("toColumn"), height)
	step = loadBytes("toRow")
	left = GP64()
	MOVQ(U32(uint32(height)), left)
	Label("row")
	product(t, m, groups, func(j int) VecVirtual { return load(Mem{Base: half, Disp: j * size}) }, func(j int, v VecVirtual) {
		switch finish {
		case storeAdded:
			VADDPS(target.at(j), v, v)
		case storeBiased:
			VADDPS(Mem{Base: biases}, v, v)
			floor := load(Mem{Base: biases, Disp: size})
			// The maximum of a NaN and a number is the operand written first: NaN stays.
			VMAXPS(v, floor, v)
		}
		VMOVUPS(v, target.at(j))
	})
	target.advance(step)
	ADDQ(U32(uint32(width*size)), half)
	DECQ(left)
	JNZ(LabelRef("row"))

	ADDQ(loadBytes("fromPatch"), from)
	ADDQ(loadBytes("toPatch"), to)
	DECQ(count)
	JNZ(LabelRef("patch"))
	VZEROUPPER()
	RET()
}
