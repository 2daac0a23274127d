package arm64

// Zero returns a vector of zeros.
func (f *Function) Zero() V {
	v := f.Vector()
	f.Arm("movi v%d.2d, #0", v)
	return v
}

// Of writes an instruction whose first operand is a new vector, the result, and returns this
// vector. args are the other operands.
func (f *Function) Of(format string, args ...any) V {
	v := f.Vector()
	f.Arm(format, append([]any{v}, args...)...)
	return v
}

// LaneNumbers returns the vector 0, 1, 2, 3.
func (f *Function) LaneNumbers() V {
	v := f.Zero()
	for lane := 1; lane < 4; lane++ {
		number := f.General()
		f.Go("MOVD $%d, R%d", lane, number)
		f.Arm("ins v%d.s[%d], w%d", v, lane, number)
	}
	return v
}

// Transposed returns the columns of four rows.
func (f *Function) Transposed(rows [4]V) (columns [4]V) {
	var pairs [4]V // even and odd elements of rows 0 and 1, then of rows 2 and 3
	for i := range pairs {
		pairs[i] = f.Of([]string{"trn1", "trn2"}[i%2]+" v%d.4s, v%d.4s, v%d.4s", rows[i&2], rows[i&2+1])
	}
	for i := range columns {
		columns[i] = f.Of([]string{"trn1", "trn2"}[i/2]+" v%d.2d, v%d.2d, v%d.2d", pairs[i%2], pairs[i%2+2])
	}
	return columns
}
