package assembly

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/pollen-ml/pollen/tensor/kernel/generate/rules"
)

// Offsets in package kernel's type pass, and its number of sums.
const (
	passSlices = 6
	passLanes  = 16

	passCount        = passSlices * 8
	passCoefficients = passCount + 8
	passSums         = passCoefficients + 8
	passPlanes       = passSums + 8
	passDistance     = passPlanes + 8

	passAhead = 2048 // prefetch distance in bytes: hardware prefetchers stop at the page boundary
)

// pass writes a function over planes of slices of n elements each; n is a positive multiple of
// passLanes.
type pass struct {
	target
	slices       []GPVirtual
	at           GPVirtual // offset in the slices, in bytes
	part         int       // current vector within passLanes elements
	elements     int       // elements per vector
	coefficients []Op      // each broadcast to all lanes
	sums         []VecVirtual
	sign         Op // the sign bit, if a register holds it
}

// format is the floating-point format of a pass's coefficients and sums.
type format struct {
	bytes                 int
	broadcast, move, zero func(ops ...Op)
}

var (
	float32s = format{4, VBROADCASTSS, VMOVUPS, VXORPS}
	float64s = format{8, VBROADCASTSD, VMOVUPD, VXORPD}
)

// passesOf writes a function for each rule.
func passesOf(t target, all []rules.Rule) {
	for _, r := range all {
		passOf(t, r)
	}
}

func passOf(t target, r rules.Rule) {
	f := float32s
	if r.Wide {
		f = float64s
	}
	name := r.Name + t.suffix
	TEXT(name, NOSPLIT, "func(p *byte)")
	Pragma("noescape")
	Doc(name + " is the function of that name in package kernel, for the pass at p.")
	argument := Load(Param("p"), GP64())
	p := &pass{target: t, elements: t.lanes * bytes / f.bytes}
	for i := range r.Slices {
		pointer := GP64()
		MOVQ(Mem{Base: argument, Disp: i * 8}, pointer)
		p.slices = append(p.slices, pointer)
	}
	end := GP64()
	MOVQ(Mem{Base: argument, Disp: passCount}, end)
	SHLQ(Imm(2), end)
	Label("plane")
	if r.Coefficients > 0 {
		scalars := GP64()
		MOVQ(Mem{Base: argument, Disp: passCoefficients}, scalars)
		for i := range r.Coefficients {
			v := t.new()
			f.broadcast(Mem{Base: scalars, Disp: i * f.bytes}, v)
			p.keep(v, f)
		}
		ADDQ(Imm(uint64(r.Coefficients*f.bytes)), Mem{Base: argument, Disp: passCoefficients})
	}
	p.at = GP64()
	XORQ(p.at, p.at)
	parts := passLanes / p.elements
	if r.Sums {
		for range parts {
			v := t.new()
			f.zero(v, v, v)
			p.sums = append(p.sums, v)
		}
	}
	if r.Alternating {
		if p.lanes > vector {
			p.sign = p.Sign().(VecVirtual)
		}
		p.alternating(r, end)
	} else {
		Label("loop")
		p.operate(r, end)
		JLT(LabelRef("loop"))
	}
	if r.Sums {
		to := GP64()
		MOVQ(Mem{Base: argument, Disp: passSums}, to)
		for i, v := range p.sums {
			f.move(v, Mem{Base: to, Disp: i * t.lanes * bytes})
		}
		ADDQ(U32(uint32(len(p.sums)*t.lanes*bytes)), Mem{Base: argument, Disp: passSums})
	}
	for _, pointer := range p.slices {
		ADDQ(Mem{Base: argument, Disp: passDistance}, pointer)
	}
	DECQ(Mem{Base: argument, Disp: passPlanes})
	JNZ(LabelRef("plane"))
	VZEROUPPER()
	RET()
}

// operate writes the operations on the next passLanes elements, and compares their end with the
// plane's.
func (p *pass) operate(r rules.Rule, end Register) {
	p.prefetch()
	for p.part = range passLanes / p.elements {
		if r.Wide {
			r.Operate(widePass{p})
		} else {
			r.Operate(p)
		}
	}
	ADDQ(Imm(passLanes*bytes), p.at)
	CMPQ(p.at, end)
}

// alternatingVectors is the number of vectors whose instructions alternate.
const alternatingVectors = 2

// alternating writes the loop of a rule whose instructions alternate between vectors. With AVX-512,
// the vectors are more than passLanes elements, and a second loop processes the rest.
func (p *pass) alternating(r rules.Rule, end Register) {
	together := make(passes, alternatingVectors)
	for i := range together {
		q := *p
		q.part, together[i] = i, &q
	}
	ahead := len(together) * p.lanes * bytes
	rest := ahead > passLanes*bytes
	if rest {
		SUBQ(Imm(uint64(ahead)), end)
		JL(LabelRef("rest"))
	}
	Label("loop")
	p.prefetch()
	r.Operate(together)
	ADDQ(Imm(uint64(ahead)), p.at)
	CMPQ(p.at, end)
	if !rest {
		JLT(LabelRef("loop"))
		return
	}
	JLE(LabelRef("loop"))
	Label("rest")
	ADDQ(Imm(uint64(ahead)), end)
	CMPQ(p.at, end)
	JGE(LabelRef("done"))
	Label("single")
	p.operate(r, end)
	JLT(LabelRef("single"))
	Label("done")
}

func (p *pass) prefetch() {
	for _, pointer := range p.slices {
		PREFETCHT0(Mem{Base: pointer, Index: p.at, Scale: 1, Disp: passAhead})
	}
}

// keep holds a coefficient for the whole pass: in a register, or on the stack in AVX2, which does
// not have enough registers for all coefficients of a pass.
func (p *pass) keep(v VecVirtual, f format) {
	if f.bytes != bytes || p.lanes > vector {
		p.coefficients = append(p.coefficients, v)
		return
	}
	m := AllocLocal(p.lanes * bytes)
	VMOVUPS(v, m)
	p.coefficients = append(p.coefficients, m)
}

func (p *pass) place(slice int) Mem {
	return Mem{Base: p.slices[slice], Index: p.at, Scale: 1, Disp: p.part * p.elements * bytes}
}
