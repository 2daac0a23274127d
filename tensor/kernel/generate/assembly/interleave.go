package assembly

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// planeAhead is the prefetch distance of the planes in bytes: some rows of small images.
const planeAhead = 512

// blockOf writes the loop over the rows of eight planes. body processes eight elements of each
// plane, whose image in blocks starts at blocks. The last eight of a row may overlap those before
// them. rows is at least 1 and width at least 8. Eight lanes are all lanes of the blocks, or half
// of them.
func blockOf(t target, name string, body func(columns []Mem, blocks Mem)) {
	TEXT(name, NOSPLIT, "func(blocks, plane *float32, offsets *[8]int, blocksRow, planeRow, rows, width int)")
	Pragma("noescape")
	blocks, plane := Load(Param("blocks"), GP64()), Load(Param("plane"), GP64())
	offsets := Load(Param("offsets"), GP64())
	columns := make([]Mem, vector)
	at := GP64()
	for j := range columns {
		base := GP64()
		MOVQ(Mem{Base: offsets, Disp: 8 * j}, base)
		LEAQ(Mem{Base: plane, Index: base, Scale: bytes}, base)
		columns[j] = Mem{Base: base, Index: at, Scale: bytes}
	}
	rows := Load(Param("rows"), GP64())
	row := GP64()
	XORQ(row, row)
	Label("row")
	MOVQ(row, at)
	to, left := GP64(), Load(Param("width"), GP64())
	MOVQ(blocks, to)
	Label("eight")
	for _, column := range columns {
		PREFETCHT0(column.Offset(planeAhead))
	}
	body(columns, Mem{Base: to})
	SUBQ(Imm(vector), left)
	JZ(LabelRef("next"))
	CMPQ(left, Imm(vector))
	JGE(LabelRef("whole"))
	// Fewer than eight are left: go back so that eight are.
	LEAQ(Mem{Base: at, Index: left, Scale: 1}, at)
	IMUL3Q(Imm(uint64(t.lanes*bytes)), left, left)
	ADDQ(left, to)
	MOVQ(U32(vector), left)
	JMP(LabelRef("eight"))
	Label("whole")
	ADDQ(Imm(vector), at)
	ADDQ(U32(uint32(vector*t.lanes*bytes)), to)
	JMP(LabelRef("eight"))
	Label("next")
	ADDQ(loadNumber("planeRow"), row)
	ADDQ(loadBytes("blocksRow"), blocks)
	DECQ(rows)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

func loadNumber(name string) Register { return Load(Param(name), GP64()) }

// interleave writes the copy of planes into blocks.
func interleave(t target) {
	blockOf(t, "interleave"+t.suffix, func(columns []Mem, blocks Mem) {
		for half := range 2 {
			var pairs [4]VecVirtual
			for j := range pairs {
				pairs[j] = YMM()
				disp := half * 4 * bytes
				VMOVUPS(columns[j].Offset(disp), pairs[j].AsX())
				VINSERTF128(Imm(1), columns[j+4].Offset(disp), pairs[j], pairs[j])
			}
			for i, unpack := range []func(ops ...Op){VUNPCKLPS, VUNPCKHPS} {
				left, right := YMM(), YMM()
				unpack(pairs[1], pairs[0], left)
				unpack(pairs[3], pairs[2], right)
				for k, pattern := range []uint64{0x44, 0xee} {
					element := YMM()
					VSHUFPS(Imm(pattern), right, left, element)
					VMOVUPS(element, blocks.Offset((half*4+i*2+k)*t.lanes*bytes))
				}
			}
		}
	})
}

// separate writes the copy of blocks into planes. The last planes are written first: where lanes
// repeat the last plane, the real one is then written last.
func separate(t target) {
	blockOf(t, "separate"+t.suffix, func(columns []Mem, blocks Mem) {
		for half := 1; half >= 0; half-- {
			var pairs [4]VecVirtual
			for j := range pairs {
				pairs[j] = YMM()
				disp := half * 4 * bytes
				VMOVUPS(blocks.Offset(j*t.lanes*bytes+disp), pairs[j].AsX())
				VINSERTF128(Imm(1), blocks.Offset((j+4)*t.lanes*bytes+disp), pairs[j], pairs[j])
			}
			type lane struct {
				place int
				v     VecVirtual
			}
			var lanes []lane
			for i, unpack := range []func(ops ...Op){VUNPCKLPS, VUNPCKHPS} {
				left, right := YMM(), YMM()
				unpack(pairs[1], pairs[0], left)
				unpack(pairs[3], pairs[2], right)
				for k, pattern := range []uint64{0x44, 0xee} {
					v := YMM()
					VSHUFPS(Imm(pattern), right, left, v)
					lanes = append(lanes, lane{half*4 + i*2 + k, v})
				}
			}
			for i := len(lanes) - 1; i >= 0; i-- {
				VMOVUPS(lanes[i].v, columns[lanes[i].place])
			}
		}
	})
}
