package assembly

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/pollen-ml/pollen/tensor/kernel/generate/rules"
)

// The methods of a pass that rules use. A value in a register is a VecVirtual, an operand an Op.

func (p *pass) Load(slice int) rules.Value {
	v := p.new()
	VMOVUPS(p.place(slice), v)
	return v
}

func (p *pass) Place(slice int) rules.Value { return p.place(slice) }

func (p *pass) Store(v rules.Value, slice int) { VMOVUPS(v.(Op), p.place(slice)) }

func (p *pass) Coefficient(i int) rules.Value { return p.coefficients[i] }

func (p *pass) Held(i int) rules.Value {
	if v, ok := p.coefficients[i].(VecVirtual); ok {
		return v
	}
	v := p.new()
	VMOVUPS(p.coefficients[i], v)
	return v
}

func (p *pass) Count(v rules.Value) { VADDPS(v.(Op), p.sums[p.part], p.sums[p.part]) }

func (p *pass) Zero() rules.Value { return p.zero() }

// of returns the result of an instruction in a new register.
func (p *pass) of(instruction func(ops ...Op), b, a rules.Value) rules.Value {
	v := p.new()
	instruction(b.(Op), a.(Op), v)
	return v
}

func (p *pass) Add(a, b rules.Value) rules.Value      { return p.of(VADDPS, b, a) }
func (p *pass) Subtract(a, b rules.Value) rules.Value { return p.of(VSUBPS, b, a) }
func (p *pass) Multiply(a, b rules.Value) rules.Value { return p.of(VMULPS, b, a) }
func (p *pass) Divide(a, b rules.Value) rules.Value   { return p.of(VDIVPS, b, a) }

func (p *pass) AddProduct(a, b, c rules.Value) rules.Value {
	VFMADD213PS(c.(Op), b.(Op), a.(Op))
	return a
}

func (p *pass) SubtractProduct(c, a, b rules.Value) rules.Value {
	VFNMADD231PS(b.(Op), a.(Op), c.(Op))
	return c
}

func (p *pass) Root(a rules.Value) rules.Value {
	v := p.new()
	VSQRTPS(a.(Op), v)
	return v
}

// VMAXPS and VMINPS of a NaN and a number return the operand written first, so NaN stays.

func (p *pass) Maximum(a, b rules.Value) rules.Value { return p.of(VMAXPS, a, b) }
func (p *pass) Minimum(a, b rules.Value) rules.Value { return p.of(VMINPS, a, b) }

// Comparisons, as the instructions encode them.
const (
	less     = 1
	notEqual = 4
)

func (p *pass) WhereLess(a, b, v rules.Value) rules.Value     { return p.where(less, a, b, v) }
func (p *pass) WhereNotEqual(a, b, v rules.Value) rules.Value { return p.where(notEqual, a, b, v) }

// where returns v in lanes where the comparison of a with b holds, and 0 elsewhere.
func (p *pass) where(comparison uint64, a, b, v rules.Value) rules.Value {
	result := p.new()
	if p.lanes == vector {
		VCMPPS(Imm(comparison), b.(Op), a.(Op), result)
		VANDPS(v.(Op), result, result)
		return result
	}
	mask := K()
	VCMPPS(Imm(comparison), b.(Op), a.(Op), mask)
	VMOVUPS_Z(v.(Op), mask, result)
	return result
}

func (p *pass) Sign() rules.Value {
	if p.sign != nil {
		return p.sign
	}
	v := p.new()
	if p.lanes == vector {
		VPCMPEQD(v, v, v)
	} else {
		VPTERNLOGD(Imm(0xff), v, v, v)
	}
	VPSLLD(Imm(31), v, v)
	return v
}

func (p *pass) And(a, b rules.Value) rules.Value    { return p.of(VANDPS, b, a) }
func (p *pass) AndNot(a, b rules.Value) rules.Value { return p.of(VANDNPS, b, a) }
func (p *pass) Or(a, b rules.Value) rules.Value     { return p.of(VORPS, b, a) }
func (p *pass) Xor(a, b rules.Value) rules.Value    { return p.of(VXORPS, a, b) }

func (p *pass) AddInteger(a, b rules.Value) rules.Value { return p.of(VPADDD, b, a) }

func (p *pass) ShiftLeft(a rules.Value, bits int) rules.Value {
	v := p.new()
	VPSLLD(Imm(uint64(bits)), a.(Op), v)
	return v
}

func (p *pass) ShiftRight(a rules.Value, bits int) rules.Value {
	v := p.new()
	VPSRLD(Imm(uint64(bits)), a.(Op), v)
	return v
}
