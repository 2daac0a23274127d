package main

import (
	"math"

	. "github.com/pollen-ml/pollen/tensor/kernel/generate/arm64"
	"github.com/pollen-ml/pollen/tensor/kernel/generate/rules"
)

// blockLanes is the number of channels that a transform processes side by side; a register holds
// half of them.
const blockLanes = 8

// transforms writes the transforms of patches.
func transforms(file *File) {
	for _, t := range rules.Transforms() {
		transformPatches(file, t)
	}
}

// maps implements the operations that linear maps use.
type maps struct {
	*Function
	factors []V // four factors per register
	places  map[uint32]int
}

// newMaps loads each factor of a transform once.
func newMaps(file *File, f *Function, t rules.Transform) *maps {
	m := &maps{Function: f, places: map[uint32]int{}}
	var factors []uint32
	for _, factor := range t.Factors() {
		bits := math.Float32bits(float32(factor))
		if _, there := m.places[bits]; !there {
			m.places[bits] = len(factors)
			factors = append(factors, bits)
		}
	}
	table := file.Constants(f)
	for i := 0; i < len(factors); i += lanes {
		var four [lanes]uint32
		copy(four[:], factors[i:])
		m.factors = append(m.factors, f.Of("ldr q%d, [x%d, #%d]", table, file.Four(four)))
	}
	return m
}

// factor returns the register and the lane that hold a factor.
func (m *maps) factor(value float64) (register V, lane int) {
	place := m.places[math.Float32bits(float32(value))]
	return m.factors[place/lanes], place % lanes
}

func (m *maps) Copy(x rules.Value) rules.Value { return m.Of("mov v%d.16b, v%d.16b", x) }

func (m *maps) Scaled(factor float64, x rules.Value) rules.Value {
	by, lane := m.factor(factor)
	return m.Of("fmul v%d.4s, v%d.4s, v%d.s[%d]", x, by, lane)
}

func (m *maps) AddTo(v, x rules.Value)        { m.Arm("fadd v%d.4s, v%d.4s, v%d.4s", v, v, x) }
func (m *maps) SubtractFrom(v, x rules.Value) { m.Arm("fsub v%d.4s, v%d.4s, v%d.4s", v, v, x) }

func (m *maps) AddScaled(v rules.Value, factor float64, x rules.Value) {
	by, lane := m.factor(factor)
	m.Arm("fmla v%d.4s, v%d.4s, v%d.s[%d]", v, x, by, lane)
}

// transformPatches writes m x m' for patches x: the columns first, then the rows of the result.
func transformPatches(file *File, t rules.Transform) {
	f := file.Function(t.Name+"NEON",
		"func(to, from, temporary *float32, toRow, toColumn, toPatch, fromRow, fromColumn, fromPatch, count int)", "is transform for one matrix.")
	height, width := t.Rows(), t.Columns()
	const size, part, epilogue = blockLanes * bytes, lanes * bytes, 3 * blockLanes * bytes
	m := newMaps(file, f, t)
	to, from, count := f.Param("to"), f.Param("from"), f.Param("count")
	f.Label("patch")
	half, column, step, left := f.Param("temporary"), f.General(), f.Bytes("fromRow"), f.General()
	f.Go("ADD $%d, R%d", epilogue, half)
	f.Go("MOVD R%d, R%d", from, column)
	f.Go("MOVD $%d, R%d", width, left)
	f.Label("column")
	for p := range 2 {
		at := f.General()
		f.Go("ADD $%d, R%d, R%d", p*part, column, at)
		t.Write(m, func(int) rules.Value { return f.Of("ld1 {v%d.4s}, [x%d], x%d", at, step) }, func(i int, v rules.Value) {
			f.Arm("str q%d, [x%d, #%d]", v, half, i*width*size+p*part)
		})
	}
	f.Go("ADD R%d, R%d", f.Bytes("fromColumn"), column)
	f.Go("ADD $%d, R%d", size, half)
	f.Go("SUBS $1, R%d", left)
	f.Go("BNE %s", "column")

	biases, row, step := f.Param("temporary"), f.General(), f.Bytes("toColumn")
	half, left = f.General(), f.General()
	f.Go("ADD $%d, R%d, R%d", epilogue, biases, half)
	f.Go("MOVD R%d, R%d", to, row)
	f.Go("MOVD $%d, R%d", height, left)
	f.Label("row")
	for p := range 2 {
		at := f.General()
		f.Go("ADD $%d, R%d, R%d", p*part, row, at)
		t.Write(m, func(j int) rules.Value { return f.Of("ldr q%d, [x%d, #%d]", half, j*size+p*part) }, func(_ int, v rules.Value) {
			switch t.Finish {
			case rules.StoreAdded:
				f.Arm("fadd v%d.4s, v%d.4s, v%d.4s", v, v, f.Of("ldr q%d, [x%d]", at))
			case rules.StoreBiased:
				f.Arm("fadd v%d.4s, v%d.4s, v%d.4s", v, v, f.Of("ldr q%d, [x%d, #%d]", biases, p*part))
				floor := f.Of("ldr q%d, [x%d, #%d]", biases, size+p*part)
				f.Arm("bit v%d.16b, v%d.16b, v%d.16b", v, floor, f.Of("fcmgt v%d.4s, v%d.4s, v%d.4s", floor, v))
				ceiling := f.Of("ldr q%d, [x%d, #%d]", biases, 2*size+p*part)
				f.Arm("bit v%d.16b, v%d.16b, v%d.16b", v, ceiling, f.Of("fcmgt v%d.4s, v%d.4s, v%d.4s", v, ceiling))
			}
			f.Arm("st1 {v%d.4s}, [x%d], x%d", v, at, step)
		})
	}
	f.Go("ADD R%d, R%d", f.Bytes("toRow"), row)
	f.Go("ADD $%d, R%d", width*size, half)
	f.Go("SUBS $1, R%d", left)
	f.Go("BNE %s", "row")
	f.Go("ADD R%d, R%d", f.Bytes("fromPatch"), from)
	f.Go("ADD R%d, R%d", f.Bytes("toPatch"), to)
	f.Go("SUBS $1, R%d", count)
	f.Go("BNE %s", "patch")
	f.Go("RET")
}

// blockOf writes the loop over the rows of eight planes. body processes eight elements of each
// plane, at two indices in bytes, whose image in blocks starts at blocks. The last eight of a row
// may overlap those before them. rows is at least 1, width at least 8.
func blockOf(file *File, name, doc string, body func(f *Function, columns [blockLanes]X, at [2]X, blocks X)) {
	f := file.Function(name, "func(blocks, plane *float32, offsets *[8]int, blocksRow, planeRow, rows, width int)", doc)
	blocks, plane, offsets := f.Param("blocks"), f.Param("plane"), f.Param("offsets")
	var columns [blockLanes]X
	for j := range columns {
		columns[j] = f.General()
		f.Go("MOVD %d(R%d), R%d", 8*j, offsets, columns[j])
		f.Go("ADD R%d<<2, R%d, R%d", columns[j], plane, columns[j])
	}
	rows, row := f.Param("rows"), f.General()
	f.Go("MOVD $0, R%d", row)
	f.Label("row")
	at, to, left := [2]X{f.General(), f.General()}, f.General(), f.Param("width")
	f.Go("MOVD R%d, R%d", row, at[0])
	f.Go("MOVD R%d, R%d", blocks, to)
	f.Label("eight")
	f.Go("ADD $%d, R%d, R%d", lanes*bytes, at[0], at[1])
	body(f, columns, at, to)
	f.Go("SUBS $%d, R%d", vector, left)
	f.Go("BEQ %s", "next")
	step := f.General()
	f.Go("MOVD $%d, R%d", vector, step)
	f.Go("CMP R%d, R%d", step, left)
	f.Go("BGE %s", "whole")
	// Fewer than eight are left: go back so that eight are.
	f.Go("MOVD R%d, R%d", left, step)
	f.Go("MOVD $%d, R%d", vector, left)
	f.Label("whole")
	f.Go("ADD R%d<<2, R%d", step, at[0])
	f.Go("ADD R%d<<5, R%d", step, to)
	f.Go("B %s", "eight")
	f.Label("next")
	f.Go("ADD R%d, R%d", f.Bytes("planeRow"), row)
	f.Go("ADD R%d, R%d", f.Bytes("blocksRow"), blocks)
	f.Go("SUBS $1, R%d", rows)
	f.Go("BNE %s", "row")
	f.Go("RET")
}

// interleaveBlocks writes the copy of planes into blocks.
func interleaveBlocks(file *File) {
	blockOf(file, "interleaveBlocks", "copies eight planes into an image in blocks.", func(f *Function, columns [blockLanes]X, at [2]X, blocks X) {
		for part, index := range at {
			var halves [2][lanes]V
			for half := range halves {
				var rows [lanes]V
				for j := range rows {
					rows[j] = f.Of("ldr q%d, [x%d, x%d]", columns[half*lanes+j], index)
				}
				halves[half] = f.Transposed(rows)
			}
			for k := range lanes {
				f.Arm("stp q%d, q%d, [x%d, #%d]", halves[0][k], halves[1][k], blocks, (part*lanes+k)*blockLanes*bytes)
			}
		}
	})
}

// separateBlocks writes the copy of blocks into planes. The last planes are written first: where
// lanes repeat the last plane, the real one is then written last.
func separateBlocks(file *File) {
	blockOf(file, "separateBlocks", "copies an image in blocks into eight planes.", func(f *Function, columns [blockLanes]X, at [2]X, blocks X) {
		for half := 1; half >= 0; half-- {
			for part, index := range at {
				var elements [lanes]V
				for k := range elements {
					elements[k] = f.Of("ldr q%d, [x%d, #%d]", blocks, ((part*lanes+k)*blockLanes+half*lanes)*bytes)
				}
				rows := f.Transposed(elements)
				for j := lanes - 1; j >= 0; j-- {
					f.Arm("str q%d, [x%d, x%d]", rows[j], columns[half*lanes+j], index)
				}
			}
		}
	})
}
