package assembly

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// gram writes the inner products of a few rows with a few other rows. A sum has eight lanes: one
// register of AVX-512, whose registers hold 4 x 4 sums, or two registers of AVX2, whose registers
// hold 2 x 3.
func gram(t target) {
	const wide = 8 // bytes
	height, width, halves, lanes := 2, 3, 2, 4
	if t.lanes == panelColumns {
		height, width, halves, lanes = 4, 4, 1, 8
	}
	TEXT("gramTile"+t.suffix, NOSPLIT, "func(products, a, b *float64, stride, columns int)")
	Pragma("noescape")
	Doc("gramTile" + t.suffix + " multiplies rows that start at a by rows that start at b, of a multiple of eight columns.")
	stride := Load(Param("stride"), GP64())
	SHLQ(Imm(3), stride)
	rows := func(name string, n int) (pointers []Register) {
		for i := range n {
			if i == 0 {
				pointers = append(pointers, Load(Param(name), GP64()))
				continue
			}
			p := GP64()
			LEAQ(Mem{Base: pointers[i-1], Index: stride, Scale: 1}, p)
			pointers = append(pointers, p)
		}
		return pointers
	}
	left, right := rows("a", height), rows("b", width)
	sums := make([][]VecVirtual, height*width)
	for i := range sums {
		for range halves {
			sums[i] = append(sums[i], t.zero())
		}
	}
	columns, k := Load(Param("columns"), GP64()), GP64()
	XORQ(k, k)
	Label("loop")
	for half := range halves {
		load := func(row Register) VecVirtual {
			v := t.new()
			VMOVUPD(Mem{Base: row, Index: k, Scale: wide, Disp: half * lanes * wide}, v)
			return v
		}
		var a []VecVirtual
		for _, row := range left {
			a = append(a, load(row))
		}
		for j, row := range right {
			b := load(row)
			for i := range a {
				VFMADD231PD(a[i], b, sums[i*width+j][half])
			}
		}
	}
	ADDQ(Imm(uint64(halves*lanes)), k)
	CMPQ(k, columns)
	JLT(LabelRef("loop"))
	products := Load(Param("products"), GP64())
	for i, sum := range sums {
		VMOVSD(addLanes(sum), Mem{Base: products, Disp: wide * i})
	}
	VZEROUPPER()
	RET()
}

// widen writes a loop that converts a multiple of eight elements to float64.
func widen(t target) {
	TEXT("widen"+t.suffix, NOSPLIT, "func(to *float64, from *float32, n int)")
	Pragma("noescape")
	Doc("widen" + t.suffix + " converts a multiple of eight elements.")
	to, from, n := Load(Param("to"), GP64()), Load(Param("from"), GP64()), Load(Param("n"), GP64())
	k := GP64()
	XORQ(k, k)
	Label("loop")
	for done := 0; done < vector; done += t.lanes / 2 {
		v := t.new()
		VCVTPS2PD(Mem{Base: from, Index: k, Scale: 4, Disp: 4 * done}, v)
		VMOVUPD(v, Mem{Base: to, Index: k, Scale: 8, Disp: 8 * done})
	}
	ADDQ(Imm(vector), k)
	CMPQ(k, n)
	JLT(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

// addLanes adds eight lanes pairwise: 8 to 4, to 2, to 1.
func addLanes(sum []VecVirtual) VecVirtual {
	four, two, one := YMM(), XMM(), XMM()
	if len(sum) == 2 {
		VADDPD(sum[1], sum[0], four)
		VEXTRACTF128(Imm(1), four, two)
	} else {
		VEXTRACTF64X4(Imm(1), sum[0], four)
		VADDPD(four, sum[0].AsY(), four)
		VEXTRACTF64X2(Imm(1), four, two) // reaches all 32 registers, unlike VEXTRACTF128
	}
	VADDPD(two, four.AsX(), two)
	VUNPCKHPD(two, two, one)
	VADDSD(one, two, one)
	return one
}
