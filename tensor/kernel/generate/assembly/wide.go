package assembly

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// wide describes the passes over float32 that compute in float64.
func wide(t target) {
	widePassOf(t, "wideSum", 1, 0, true, func(p widePass) { p.count(p.load(0)) })
	widePassOf(t, "wideDifference", 2, 0, true, func(p widePass) { p.count(p.subtract(p.load(0), p.load(1))) })
	widePassOf(t, "wideSquares", 1, 1, true, func(p widePass) {
		d := p.subtract(p.load(0), p.coefficients[0])
		p.count(p.multiply(d, d))
	})
	widePassOf(t, "wideProducts", 2, 1, true, func(p widePass) {
		d := p.subtract(p.load(1), p.coefficients[0])
		p.count(p.multiply(d, p.load(0)))
	})
	widePassOf(t, "wideAffine", 2, 3, false, func(p widePass) {
		d := p.subtract(p.load(1), p.coefficients[0])
		p.store(p.add(p.multiply(d, p.coefficients[1]), p.coefficients[2]), 0)
	})
	widePassOf(t, "wideCombine", 3, 4, false, func(p widePass) {
		d := p.multiply(p.subtract(p.load(2), p.coefficients[0]), p.coefficients[1])
		p.store(p.subtract(p.multiply(p.load(1), p.coefficients[2]), p.add(d, p.coefficients[3])), 0)
	})
}

// widePass is a pass whose elements are widened to float64 when they are loaded; so are its coefficients and sums.
type widePass struct{ *pass }

func widePassOf(t target, name string, slices, coefficients int, sums bool, body func(p widePass)) {
	formattedPassOf(t, float64s, name, slices, coefficients, sums, func(p *pass) { body(widePass{p}) })
}

func (p widePass) load(slice int) VecVirtual {
	v := p.new()
	VCVTPS2PD(p.place(slice), v)
	return v
}

func (p widePass) store(v VecVirtual, slice int) {
	if p.lanes == vector {
		half := XMM()
		VCVTPD2PSY(v, half)
		VMOVUPS(half, p.place(slice))
		return
	}
	half := YMM()
	VCVTPD2PS(v, half)
	VMOVUPS(half, p.place(slice))
}

// count adds to the sums.
func (p widePass) count(v VecVirtual) { VADDPD(v, p.sums[p.part], p.sums[p.part]) }

func (p widePass) multiply(a VecVirtual, b Op) VecVirtual {
	v := p.new()
	VMULPD(b, a, v)
	return v
}

func (p widePass) add(a VecVirtual, b Op) VecVirtual {
	v := p.new()
	VADDPD(b, a, v)
	return v
}

// subtract is a - b.
func (p widePass) subtract(a VecVirtual, b Op) VecVirtual {
	v := p.new()
	VSUBPD(b, a, v)
	return v
}
