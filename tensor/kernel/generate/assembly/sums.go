package assembly

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// accumulators are the sums of a register tile: for each row, the vectors of its columns, of one
// panel or two.
type accumulators struct {
	target
	columns int
	rows    [][]VecVirtual
}

func newAccumulators(t target, rows int) accumulators {
	return newWideAccumulators(t, rows, panelColumns)
}

func newWideAccumulators(t target, rows, columns int) accumulators {
	s := accumulators{t, columns, make([][]VecVirtual, rows)}
	for i := range s.rows {
		for range s.parts() {
			s.rows[i] = append(s.rows[i], t.zero())
		}
	}
	return s
}

// parts returns the number of vectors of a row.
func (s accumulators) parts() int { return s.columns / s.lanes }

// step adds the products of one depth: each row's scalar times the panel's row.
func (s accumulators) step(scalars []Mem, b Mem) {
	var row []VecVirtual
	for h := range s.parts() {
		v := s.new()
		VMOVUPS(b.Offset(h*s.lanes*bytes), v)
		row = append(row, v)
	}
	s.multiplyAdd(scalars, row)
}

// stepHalves is step with a panel row in two separate halves.
func (s accumulators) stepHalves(scalars []Mem, first, second Mem) {
	s.multiplyAdd(scalars, s.loadHalves([2]Mem{first, second}))
}

func (s accumulators) multiplyAdd(scalars []Mem, row []VecVirtual) {
	for i, sum := range s.rows {
		if len(row) == 1 {
			VFMADD231PS_BCST(scalars[i], row[0], sum[0])
			continue
		}
		a := s.new()
		VBROADCASTSS(scalars[i], a)
		for h := range row {
			VFMADD231PS(row[h], a, sum[h])
		}
	}
}

// loadHalves loads a row from two separate halves.
func (s accumulators) loadHalves(halves [2]Mem) []VecVirtual {
	if s.parts() == 1 {
		v := s.new()
		VMOVUPS(halves[0], v.AsY())
		VINSERTF32X8(Imm(1), halves[1], v, v)
		return []VecVirtual{v}
	}
	row := []VecVirtual{s.new(), s.new()}
	for h, v := range row {
		VMOVUPS(halves[h], v)
	}
	return row
}

// storeHalves stores a row to two separate halves.
func (s accumulators) storeHalves(row []VecVirtual, halves [2]Mem) {
	if s.lanes == panelColumns {
		VMOVUPS(row[0].AsY(), halves[0])
		VEXTRACTF32X8(Imm(1), row[0], halves[1])
		return
	}
	for h, v := range row {
		VMOVUPS(v, halves[h])
	}
}

// each visits the accumulators with their addresses in the output.
func (s accumulators) each(c, stride GPVirtual, visit func(sum VecVirtual, at Mem)) {
	at := GP64()
	MOVQ(c, at)
	for i, row := range s.rows {
		for h, sum := range row {
			visit(sum, Mem{Base: at, Disp: h * s.lanes * bytes})
		}
		if i+1 < len(s.rows) {
			ADDQ(stride, at)
		}
	}
}

// eachRow visits the rows with their addresses in an output with separate halves.
func (s accumulators) eachRow(outputs [2]GPVirtual, stride GPVirtual, visit func(row []VecVirtual, halves [2]Mem)) {
	var halves [2]Mem
	for h, output := range outputs {
		at := GP64()
		MOVQ(output, at)
		halves[h] = Mem{Base: at}
	}
	for i, row := range s.rows {
		visit(row, halves)
		if i+1 < len(s.rows) {
			ADDQ(stride, halves[0].Base)
			ADDQ(stride, halves[1].Base)
		}
	}
}

// addToRows adds one value per row.
func (s accumulators) addToRows(bias Register) {
	for i, row := range s.rows {
		v := s.new()
		VBROADCASTSS(Mem{Base: bias, Disp: i * bytes}, v)
		for _, sum := range row {
			VADDPS(v, sum, sum)
		}
	}
}

// addToColumns adds one value per column.
func (s accumulators) addToColumns(bias Register) {
	for h := range s.parts() {
		v := s.new()
		VMOVUPS(Mem{Base: bias, Disp: h * s.lanes * bytes}, v)
		for _, row := range s.rows {
			VADDPS(v, row[h], row[h])
		}
	}
}

// rectify replaces negative sums by zero.
func (s accumulators) rectify() {
	zero := s.zero()
	for _, row := range s.rows {
		for _, sum := range row {
			// VMAXPS of a NaN and zero returns the operand written first, so NaN stays.
			VMAXPS(sum, zero, sum)
		}
	}
}

// limit replaces sums above the ceiling, the upper half of the flags, by it.
func (s accumulators) limit(f Register) {
	bits, scalar, ceiling := GP64(), XMM(), s.new()
	MOVQ(f, bits)
	SHRQ(Imm(ceilingBit), bits)
	VMOVD(bits.As32(), scalar)
	VBROADCASTSS(scalar, ceiling)
	for _, row := range s.rows {
		for _, sum := range row {
			// VMINPS of a NaN and a number returns the operand written first, so NaN stays.
			VMINPS(sum, ceiling, sum)
		}
	}
}

// prefetch prefetches the output's cache lines while the sums are computed.
func (s accumulators) prefetch(c, stride GPVirtual) {
	at := GP64()
	MOVQ(c, at)
	for i := range s.rows {
		for column := 0; column < s.columns; column += panelColumns {
			PREFETCHT0(Mem{Base: at, Disp: column * bytes})
		}
		PREFETCHT0(Mem{Base: at, Disp: (s.columns - 1) * bytes})
		if i+1 < len(s.rows) {
			ADDQ(stride, at)
		}
	}
}

// addHalves adds to a row the contents of two separate halves.
func (s accumulators) addHalves(row []VecVirtual, halves [2]Mem) {
	if s.lanes == panelColumns {
		VADDPS(s.loadHalves(halves)[0], row[0], row[0])
		return
	}
	for h, v := range row {
		VADDPS(halves[h], v, v)
	}
}

// halves returns a row as two vectors of eight.
func (s accumulators) halves(row []VecVirtual) [2]VecVirtual {
	if s.lanes < panelColumns {
		return [2]VecVirtual{row[0], row[1]}
	}
	second := YMM()
	VEXTRACTF32X8(Imm(1), row[0], second)
	return [2]VecVirtual{row[0].AsY().(VecVirtual), second}
}
