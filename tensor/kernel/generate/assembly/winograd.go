package assembly

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/pollen-ml/pollen/tensor/kernel/generate/rules"
)

// WinogradAVX2 describes the transforms of patches, the products at their points, and the blocked
// layout, in AVX2.
func WinogradAVX2() { winograd(avx2) }

// WinogradAVX512 describes the same functions with twice the lanes.
func WinogradAVX512() { winograd(avx512) }

func winograd(t target) {
	ConstraintExpr("!purego")
	for _, transform := range rules.Transforms() {
		transformPatches(t, transform)
	}
	multiplyPoints(t, 1)
	if t.lanes == panelColumns {
		multiplyPoints(t, 2)
	}
	interleave(t)
	separate(t)
}

// The methods of a target that linear maps use.

func (t target) Copy(x rules.Value) rules.Value {
	v := t.new()
	VMOVAPS(x.(Op), v)
	return v
}

func (t target) Scaled(factor float64, x rules.Value) rules.Value {
	v := t.new()
	if t.lanes == vector {
		VMULPS(t.constant(factor), x.(Op), v)
	} else {
		VMULPS_BCST(t.constant(factor), x.(Op), v)
	}
	return v
}

func (t target) AddTo(v, x rules.Value)        { VADDPS(x.(Op), v.(Op), v.(Op)) }
func (t target) SubtractFrom(v, x rules.Value) { VSUBPS(x.(Op), v.(Op), v.(Op)) }

func (t target) AddScaled(v rules.Value, factor float64, x rules.Value) {
	if t.lanes == vector {
		VFMADD231PS(t.constant(factor), x.(Op), v.(Op))
	} else {
		VFMADD231PS_BCST(t.constant(factor), x.(Op), v.(Op))
	}
}

// constants are the constants in the file: for AVX2 in all lanes of a vector; for AVX-512, which
// broadcasts from memory, once.
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

// strides addresses the elements of a row or column, up to thirteen, from one or two pointers.
type strides struct {
	bases  []GPVirtual // addresses of the first element and of the ninth
	single GPVirtual   // the stride; odd holds multiples of it
	odd    map[int]GPVirtual
}

// newStrides computes the registers for count rows at a distance of single bytes from base. An
// address can scale a register by 1, 2, 4 or 8; multiples of 3, 5 and 7, and a second base after
// eight rows, need additional registers.
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

// transformPatches writes m x m' for patches x: the columns first, then the rows of the result.
func transformPatches(t target, transform rules.Transform) {
	name := transform.Name + t.suffix
	TEXT(name, NOSPLIT, "func(to, from, temporary *float32, toRow, toColumn, toPatch, fromRow, fromColumn, fromPatch, count int)")
	Pragma("noescape")
	Doc(name + " is transform for one matrix.")
	height, width := transform.Rows(), transform.Columns()
	size, epilogue := t.lanes*bytes, 3*t.lanes*bytes
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
	transform.Write(t, func(i int) rules.Value { return load(source.at(i)) }, func(i int, result rules.Value) {
		VMOVUPS(result.(Op), Mem{Base: half, Disp: i * width * size})
	})
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
	transform.Write(t, func(j int) rules.Value { return load(Mem{Base: half, Disp: j * size}) }, func(j int, result rules.Value) {
		v := result.(VecVirtual)
		switch transform.Finish {
		case rules.StoreAdded:
			VADDPS(target.at(j), v, v)
		case rules.StoreBiased:
			VADDPS(Mem{Base: biases}, v, v)
			floor, ceiling := load(Mem{Base: biases, Disp: size}), load(Mem{Base: biases, Disp: 2 * size})
			// VMAXPS and VMINPS of a NaN and a number return the operand written first, so NaN stays.
			VMAXPS(v, floor, v)
			VMINPS(v, ceiling, v)
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
