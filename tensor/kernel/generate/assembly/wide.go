package assembly

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// wide describes the passes over float32 that compute in float64.
func wide(t target) {
	widePassOf(t, "wideSum", 1, 0, true, func(p *widePass) { p.count(p.load(0)) })
	widePassOf(t, "wideDifference", 2, 0, true, func(p *widePass) { p.count(p.subtract(p.load(0), p.load(1))) })
	widePassOf(t, "wideSquares", 1, 1, true, func(p *widePass) {
		d := p.subtract(p.load(0), p.coefficients[0])
		p.count(p.multiply(d, d))
	})
	widePassOf(t, "wideProducts", 2, 1, true, func(p *widePass) {
		d := p.subtract(p.load(1), p.coefficients[0])
		p.count(p.multiply(d, p.load(0)))
	})
	widePassOf(t, "wideAffine", 2, 3, false, func(p *widePass) {
		d := p.subtract(p.load(1), p.coefficients[0])
		p.store(p.add(p.multiply(d, p.coefficients[1]), p.coefficients[2]), 0)
	})
	widePassOf(t, "wideCombine", 3, 4, false, func(p *widePass) {
		d := p.multiply(p.subtract(p.load(2), p.coefficients[0]), p.coefficients[1])
		p.store(p.subtract(p.multiply(p.load(1), p.coefficients[2]), p.add(d, p.coefficients[3])), 0)
	})
}

// widePass is a pass whose elements are widened when they are loaded.
type widePass struct {
	target
	slices       []GPVirtual
	at           GPVirtual
	part         int
	coefficients []VecVirtual
	sums         []VecVirtual
}

// widePassOf is passOf with coefficients and sums in float64.
func widePassOf(t target, name string, slices, coefficients int, sums bool, body func(p *widePass)) {
	name += t.suffix
	TEXT(name, NOSPLIT, "func(p *byte)")
	Pragma("noescape")
	Doc(name + " is the function of that name in package kernel, for the pass at p.")
	argument := Load(Param("p"), GP64())
	p := &widePass{target: t}
	scalars := GP64()
	if coefficients > 0 {
		MOVQ(Mem{Base: argument, Disp: passCoefficients}, scalars)
	}
	for i := range coefficients {
		v := t.new()
		VBROADCASTSD(Mem{Base: scalars, Disp: i * 2 * bytes}, v)
		p.coefficients = append(p.coefficients, v)
	}
	for i := range slices {
		pointer := GP64()
		MOVQ(Mem{Base: argument, Disp: i * 8}, pointer)
		p.slices = append(p.slices, pointer)
	}
	end := GP64()
	MOVQ(Mem{Base: argument, Disp: passCount}, end)
	SHLQ(Imm(2), end)
	p.at = GP64()
	XORQ(p.at, p.at)
	parts := passLanes / p.wideLanes()
	if sums {
		for range parts {
			v := t.new()
			VXORPD(v, v, v)
			p.sums = append(p.sums, v)
		}
	}
	Label("loop")
	for p.part = range parts {
		body(p)
	}
	ADDQ(Imm(passLanes*bytes), p.at)
	CMPQ(p.at, end)
	JLT(LabelRef("loop"))
	if sums {
		MOVQ(Mem{Base: argument, Disp: passSums}, end)
		for i, v := range p.sums {
			VMOVUPD(v, Mem{Base: end, Disp: i * t.lanes * bytes})
		}
	}
	VZEROUPPER()
	RET()
}

func (p *widePass) wideLanes() int { return p.lanes / 2 }

func (p *widePass) place(slice int) Mem {
	return Mem{Base: p.slices[slice], Index: p.at, Scale: 1, Disp: p.part * p.wideLanes() * bytes}
}

func (p *widePass) load(slice int) VecVirtual {
	v := p.new()
	VCVTPS2PD(p.place(slice), v)
	return v
}

func (p *widePass) store(v VecVirtual, slice int) {
	half := XMM()
	VCVTPD2PSY(v, half)
	VMOVUPS(half, p.place(slice))
}

// count adds to the sums.
func (p *widePass) count(v VecVirtual) { VADDPD(v, p.sums[p.part], p.sums[p.part]) }

func (p *widePass) multiply(a, b VecVirtual) VecVirtual {
	v := p.new()
	VMULPD(b, a, v)
	return v
}

func (p *widePass) add(a, b VecVirtual) VecVirtual {
	v := p.new()
	VADDPD(b, a, v)
	return v
}

// subtract is a - b.
func (p *widePass) subtract(a, b VecVirtual) VecVirtual {
	v := p.new()
	VSUBPD(b, a, v)
	return v
}
