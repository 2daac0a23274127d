package assembly

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// tapPlane describes a function for filters of side x side taps. It computes rows lines of outputs
// at a time, so that each line of the source, once read, is used in up to side products.
type tapPlane struct {
	side, stride, rows int
	memory             bool // whether the weights do not fit into registers
}

// tapPlanes writes the functions for convolutions of whole planes.
func tapPlanes() {
	for _, p := range []tapPlane{{3, 1, 7, false}, {5, 1, 4, false}, {3, 2, 7, false}, {5, 2, 4, true}} {
		p.write()
	}
}

// pairs returns the number of pairs of vectors that hold the elements of a line which sixteen
// outputs read.
func (p tapPlane) pairs() int { return (p.side + 1) / 2 }

func (p tapPlane) write() {
	name := fmt.Sprintf("tapPlane%dx%dStride%dAVX512", p.side, p.side, p.stride)
	TEXT(name, NOSPLIT, "func(to, from, weights, epilogue *float32, masks *uint16, blocks, height, width, outHeight, outWidth, padHeight, padWidth int)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s convolves a plane of at least %d lines of outputs, see planeTaps.", name, p.rows))
	to, from, weights := Load(Param("to"), GP64()), Load(Param("from"), GP64()), Load(Param("weights"), GP64())
	masks, blocks, width, outWidth := Load(Param("masks"), GP64()), Load(Param("blocks"), GP64()), loadBytes("width"), loadBytes("outWidth")
	SUBQ(loadBytes("padWidth"), from)
	weight := func(tap int) Mem { return Mem{Base: weights, Disp: tap * bytes} }
	var broadcast []VecVirtual
	if !p.memory {
		for tap := range p.side * p.side {
			w := ZMM()
			VBROADCASTSS(weight(tap), w)
			broadcast = append(broadcast, w)
		}
	}
	var evens, odds VecVirtual
	loads := p.side
	if p.stride == 2 {
		evens, odds, loads = ZMM(), ZMM(), 2*p.pairs()
		VMOVUPS(everySecond(0), evens)
		VMOVUPS(everySecond(1), odds)
	}

	Label("block")
	valid := loadMasks(masks, loads+1) // of each load, and of the outputs
	line := GP64()                     // of the outputs
	XORQ(line, line)

	Label("lines")
	row, at := GP64(), GP64() // the first line that these outputs read
	LEAQ(Mem{Base: line}, row)
	if p.stride == 2 {
		ADDQ(row, row)
	}
	SUBQ(NewParamAddr("padHeight", 80), row)
	MOVQ(width, at)
	IMULQ(row, at)
	ADDQ(from, at)
	sums := make([]VecVirtual, p.rows)
	for i := range sums {
		sums[i] = avx512.zero()
	}
	for i := range (p.rows-1)*p.stride + p.side {
		outside := fmt.Sprintf("outside_%d", i)
		CMPQ(row, NewParamAddr("height", 48))
		JAE(LabelRef(outside)) // row is negative, or at least height
		p.readLine(at, valid, evens, odds, nil, func(s int, v VecVirtual) {
			for j, sum := range sums {
				r := i - j*p.stride
				if r < 0 || r >= p.side {
					continue
				}
				if p.memory {
					VFMADD231PS_BCST(weight(r*p.side+s), v, sum)
				} else {
					VFMADD231PS(broadcast[r*p.side+s], v, sum)
				}
			}
		})
		Label(outside)
		INCQ(row)
		ADDQ(width, at)
	}

	epilogue, out, bound := Load(Param("epilogue"), GP64()), GP64(), ZMM()
	for _, sum := range sums {
		VADDPS_BCST(Mem{Base: epilogue}, sum, sum)
	}
	// VMAXPS and VMINPS of a NaN and a number return the operand written first, so NaN stays.
	VBROADCASTSS(Mem{Base: epilogue, Disp: bytes}, bound)
	for _, sum := range sums {
		VMAXPS(sum, bound, sum)
	}
	VBROADCASTSS(Mem{Base: epilogue, Disp: 2 * bytes}, bound)
	for _, sum := range sums {
		VMINPS(sum, bound, sum)
	}
	MOVQ(outWidth, out)
	IMULQ(line, out)
	ADDQ(to, out)
	for i, sum := range sums {
		if i > 0 {
			ADDQ(outWidth, out)
		}
		VMOVUPS(sum, valid[loads], Mem{Base: out})
	}
	last := Load(Param("outHeight"), GP64())
	SUBQ(Imm(uint64(p.rows)), last)
	CMPQ(line, last)
	JE(LabelRef("next"))
	ADDQ(Imm(uint64(p.rows)), line)
	CMPQ(line, last)
	CMOVQGT(last, line) // the last lines overlap those before them
	JMP(LabelRef("lines"))
	Label("next")
	ADDQ(Imm(panelColumns*bytes), to)
	ADDQ(U32(uint32(p.stride*panelColumns*bytes)), from)
	DECQ(blocks)
	JNZ(LabelRef("block"))
	VZEROUPPER()
	RET()
}

// loadMasks loads count masks and advances to the next block's.
func loadMasks(from Register, count int) []Register {
	masks := make([]Register, count)
	for i := range masks {
		masks[i] = K()
		KMOVW(Mem{Base: from, Disp: 2 * i}, masks[i])
	}
	ADDQ(Imm(uint64(2*count)), from)
	return masks
}

// readLine calls visit with the elements of the line at an address that each column of taps reads,
// from left to right. Elements outside the line have the value outside, nil for 0.
func (p tapPlane) readLine(at Register, valid []Register, evens, odds, outside VecVirtual, visit func(s int, v VecVirtual)) {
	load := func(element, mask int) VecVirtual {
		v, from := ZMM(), Mem{Base: at, Disp: element * bytes}
		if outside == nil {
			VMOVUPS_Z(from, valid[mask], v)
			return v
		}
		VMOVAPS(outside, v)
		VMOVUPS(from, valid[mask], v)
		return v
	}
	if p.stride == 1 {
		for s := range p.side {
			visit(s, load(s, s))
		}
		return
	}
	for pair := range p.pairs() {
		low, high, even := load(2*pair, 2*pair), load(2*pair+panelColumns, 2*pair+1), ZMM()
		VMOVUPS(evens, even)
		VPERMI2PS(high, low, even)
		visit(2*pair, even)
		if s := 2*pair + 1; s < p.side {
			VPERMT2PS(high, odds, low)
			visit(s, low)
		}
	}
}

// everySecond returns the indices of every second element of two vectors, starting with first.
func everySecond(first uint32) Mem {
	table, made := secondTables[first]
	if !made {
		values := make([]uint32, panelColumns)
		for i := range values {
			values[i] = first + 2*uint32(i)
		}
		table = numbers(fmt.Sprintf("everySecondFrom%d", first), values...)
		secondTables[first] = table
	}
	return table
}

// secondTables are the tables that everySecond has written.
var secondTables = map[uint32]Mem{}
