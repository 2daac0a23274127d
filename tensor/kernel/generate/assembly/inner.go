package assembly

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// dotRows writes inner products of one vector with rows of a matrix. A sum has sixteen lanes: one
// register of AVX-512 or two of AVX2. Next to the operands, the registers hold eight and four sums.
func dotRows(t target) {
	TEXT("dotRows"+t.suffix, NOSPLIT, "func(sums, x, rows *float32, distance, depth, count int)")
	Pragma("noescape")
	Doc("dotRows" + t.suffix + " multiplies x by rows of the same length, a multiple of sixteen, that are distance elements apart.")
	sums, rows, distance := Load(Param("sums"), GP64()), Load(Param("rows"), GP64()), loadBytes("distance")
	depth, count := loadBytes("depth"), Load(Param("count"), GP64())
	three := GP64()
	LEAQ(Mem{Base: distance, Index: distance, Scale: 2}, three)
	most := 4
	if t.lanes == panelColumns {
		most = 8
	}
	for height := most; height > 0; height /= 2 {
		next, loop, after := fmt.Sprintf("rows_%d", height), fmt.Sprintf("depth_%d", height), fmt.Sprintf("after_%d", height)
		Label(next)
		CMPQ(count, Imm(uint64(height)))
		JL(LabelRef(after))
		x, k := Load(Param("x"), GP64()), GP64()
		first, second := GP64(), GP64() // the first row, and the fifth
		MOVQ(rows, first)
		LEAQ(Mem{Base: rows, Index: distance, Scale: 4}, second)
		MOVQ(depth, k)
		products := make([][]VecVirtual, height)
		for i := range products {
			for range panelColumns / t.lanes {
				products[i] = append(products[i], t.zero())
			}
		}
		Label(loop)
		for part := range panelColumns / t.lanes {
			a := t.new()
			at := part * t.lanes * bytes
			VMOVUPS(Mem{Base: x, Disp: at}, a)
			for i := range products {
				row := Mem{Base: first, Disp: at}
				if i >= 4 {
					row.Base = second
				}
				switch i % 4 {
				case 1, 2:
					row.Index, row.Scale = distance, uint8(i%4)
				case 3:
					row.Index, row.Scale = three, 1
				}
				VFMADD231PS(row, a, products[i][part])
			}
		}
		for _, pointer := range []Register{x, first, second} {
			ADDQ(Imm(panelColumns*bytes), pointer)
		}
		SUBQ(Imm(panelColumns*bytes), k)
		JNZ(LabelRef(loop))
		var quarters []VecVirtual
		for _, p := range products {
			quarters = append(quarters, fold(p))
		}
		for i := 0; i < height; i += 4 {
			if height < 4 {
				for j, q := range quarters {
					VMOVSS(addFour(q), Mem{Base: sums, Disp: j * bytes})
				}
				break
			}
			VMOVUPS(addFours(quarters[i:i+4]), Mem{Base: sums, Disp: i * bytes})
		}
		ADDQ(Imm(uint64(height*bytes)), sums)
		LEAQ(Mem{Base: rows, Index: distance, Scale: uint8(height)}, rows)
		SUBQ(Imm(uint64(height)), count)
		if height == most {
			JMP(LabelRef(next))
		}
		Label(after)
	}
	VZEROUPPER()
	RET()
}

// fold adds sixteen lanes pairwise to eight, and these to four.
func fold(sum []VecVirtual) VecVirtual {
	eight, upper, four := YMM(), YMM(), XMM()
	if len(sum) == 2 {
		VADDPS(sum[1], sum[0], eight)
		VEXTRACTF128(Imm(1), eight, four)
	} else {
		VEXTRACTF32X8(Imm(1), sum[0], upper)
		VADDPS(upper, sum[0].AsY(), eight)
		VEXTRACTF32X4(Imm(1), eight, four) // reaches all 32 registers, unlike VEXTRACTF128
	}
	VADDPS(four, eight.AsX(), four)
	return four
}

// addFour adds four lanes: to two, to one.
func addFour(four VecVirtual) VecVirtual {
	two, one := XMM(), XMM()
	VUNPCKHPD(four, four, two)
	VADDPS(two, four, two)
	VMOVSHDUP(two, one)
	VADDSS(one, two, one)
	return one
}

// addFours is addFour for four vectors, whose sums are the lanes of the result.
func addFours(v []VecVirtual) VecVirtual {
	var pairs []VecVirtual
	for i := 0; i < 4; i += 2 {
		lower, upper := XMM(), XMM()
		VUNPCKLPD(v[i+1], v[i], lower)
		VUNPCKHPD(v[i+1], v[i], upper)
		VADDPS(upper, lower, lower)
		pairs = append(pairs, lower)
	}
	even, odd := XMM(), XMM()
	VSHUFPS(Imm(0x88), pairs[1], pairs[0], even)
	VSHUFPS(Imm(0xdd), pairs[1], pairs[0], odd)
	VADDPS(odd, even, even)
	return even
}
