package main

import (
	"fmt"
	"strings"

	. "github.com/pollen-ml/pollen/tensor/kernel/generate/arm64"
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
)

// passes writes, for each rule, a function over planes of slices of n elements each, n a positive
// multiple of passLanes, and the Go function that dispatches to them.
func passes(file *File, all []rules.Rule) {
	var choice strings.Builder
	choice.WriteString("\nimport \"unsafe\"\n\nfunc (p *pass) run(r rule) {\nat := (*byte)(unsafe.Pointer(p))\nswitch r {\n")
	for _, r := range all {
		f := file.Function(r.Name+"NEON", "func(p *byte)", "is the function of that name in package kernel, for the pass at p.")
		p := newPass(f, r)
		p.loop(func() {
			if r.Wide {
				r.Operate(wide{p})
			} else {
				r.Operate(p)
			}
		})
		fmt.Fprintf(&choice, "case rule%s:\n%sNEON(at)\n", r.Function(), r.Name)
	}
	choice.WriteString("}\n}\n")
	file.Stub(choice.String())
}

// pass is the function of a rule that is being written. Its methods are those that rules use.
type pass struct {
	*Function
	argument     X
	slices       []X
	part         int // current vector within passLanes elements
	coefficients []V // each broadcast to all lanes
	sums         []V
	totals       X      // address for the sums of a plane
	planes       X      // number of planes left
	elements     int    // elements per vector
	as           string // lane arrangement in instructions
}

func newPass(f *Function, r rules.Rule) *pass {
	p := &pass{Function: f, argument: f.Param("p"), elements: lanes, as: "4s"}
	if r.Wide {
		p.elements, p.as = lanes/2, "2d"
	}
	for i := range r.Slices {
		pointer := f.General()
		f.Go("MOVD %d(R%d), R%d", 8*i, p.argument, pointer)
		p.slices = append(p.slices, pointer)
	}
	scalars := f.General()
	if r.Coefficients > 0 {
		f.Go("MOVD %d(R%d), R%d", passCoefficients, p.argument, scalars)
	}
	if r.Sums {
		p.totals = f.General()
		f.Go("MOVD %d(R%d), R%d", passSums, p.argument, p.totals)
	}
	p.planes = f.General()
	f.Go("MOVD %d(R%d), R%d", passPlanes, p.argument, p.planes)
	f.Label("plane")
	for range r.Coefficients {
		v := f.Vector()
		f.Arm("ld1r {v%d."+p.as+"}, [x%d], #%d", v, scalars, 16/p.elements)
		p.coefficients = append(p.coefficients, v)
	}
	if r.Sums {
		for range passLanes / p.elements {
			p.sums = append(p.sums, f.Zero())
		}
	}
	return p
}

// loop writes the loop, whose body processes one vector, and the end of the function.
func (p *pass) loop(body func()) {
	count, distance := p.General(), p.General()
	p.Go("MOVD %d(R%d), R%d", passCount, p.argument, count)
	p.Go("MOVD %d(R%d), R%d", passDistance, p.argument, distance)
	p.Go("SUB R%d<<2, R%d, R%d", count, distance, distance)
	p.Label("loop")
	for p.part = range passLanes / p.elements {
		body()
	}
	for _, pointer := range p.slices {
		p.Go("ADD $%d, R%d", passLanes*bytes, pointer)
	}
	p.Go("SUBS $%d, R%d", passLanes, count)
	p.Go("BNE %s", "loop")
	if len(p.sums) > 0 {
		for i := 0; i < len(p.sums); i += 2 {
			p.Arm("stp q%d, q%d, [x%d, #%d]", p.sums[i], p.sums[i+1], p.totals, 16*i)
		}
		p.Go("ADD $%d, R%d", 16*len(p.sums), p.totals)
	}
	for _, pointer := range p.slices {
		p.Go("ADD R%d, R%d", distance, pointer)
	}
	p.Go("SUBS $1, R%d", p.planes)
	p.Go("BNE %s", "plane")
	p.Go("RET")
}

// of returns the result of an instruction in a new register.
func (p *pass) of(instruction, as string, a, b rules.Value) rules.Value {
	v := p.Vector()
	p.Arm(fmt.Sprintf("%s v%%d.%[2]s, v%%d.%[2]s, v%%d.%[2]s", instruction, as), v, a, b)
	return v
}

func (p *pass) Load(slice int) rules.Value {
	v := p.Vector()
	p.Arm("ldr q%d, [x%d, #%d]", v, p.slices[slice], p.part*p.elements*bytes)
	return v
}

func (p *pass) Place(slice int) rules.Value { return p.Load(slice) }

func (p *pass) Store(v rules.Value, slice int) {
	p.Arm("str q%d, [x%d, #%d]", v, p.slices[slice], p.part*p.elements*bytes)
}

func (p *pass) Coefficient(i int) rules.Value { return p.coefficients[i] }
func (p *pass) Held(i int) rules.Value        { return p.coefficients[i] }
func (p *pass) Zero() rules.Value             { return p.Function.Zero() }

func (p *pass) Count(v rules.Value) {
	sum := p.sums[p.part]
	p.Arm(fmt.Sprintf("fadd v%%d.%[1]s, v%%d.%[1]s, v%%d.%[1]s", p.as), sum, sum, v)
}

func (p *pass) Add(a, b rules.Value) rules.Value      { return p.of("fadd", p.as, a, b) }
func (p *pass) Subtract(a, b rules.Value) rules.Value { return p.of("fsub", p.as, a, b) }
func (p *pass) Multiply(a, b rules.Value) rules.Value { return p.of("fmul", p.as, a, b) }
func (p *pass) Divide(a, b rules.Value) rules.Value   { return p.of("fdiv", p.as, a, b) }
func (p *pass) Maximum(a, b rules.Value) rules.Value  { return p.of("fmax", p.as, a, b) }
func (p *pass) Minimum(a, b rules.Value) rules.Value  { return p.of("fmin", p.as, a, b) }

func (p *pass) AddProduct(a, b, c rules.Value) rules.Value {
	v := p.Vector()
	p.Arm("mov v%d.16b, v%d.16b", v, c)
	p.Arm("fmla v%d.4s, v%d.4s, v%d.4s", v, a, b)
	return v
}

func (p *pass) SubtractProduct(c, a, b rules.Value) rules.Value {
	p.Arm("fmls v%d.4s, v%d.4s, v%d.4s", c, a, b)
	return c
}

func (p *pass) Root(a rules.Value) rules.Value {
	v := p.Vector()
	p.Arm("fsqrt v%d.4s, v%d.4s", v, a)
	return v
}

func (p *pass) WhereLess(a, b, v rules.Value) rules.Value {
	return p.And(v, p.of("fcmgt", p.as, b, a))
}

func (p *pass) WhereNotEqual(a, b, v rules.Value) rules.Value {
	return p.AndNot(p.of("fcmeq", p.as, a, b), v)
}

func (p *pass) Sign() rules.Value {
	v := p.Vector()
	p.Arm("movi v%d.4s, #128, lsl #24", v)
	return v
}

func (p *pass) And(a, b rules.Value) rules.Value        { return p.of("and", "16b", a, b) }
func (p *pass) AndNot(a, b rules.Value) rules.Value     { return p.of("bic", "16b", b, a) }
func (p *pass) Or(a, b rules.Value) rules.Value         { return p.of("orr", "16b", a, b) }
func (p *pass) Xor(a, b rules.Value) rules.Value        { return p.of("eor", "16b", a, b) }
func (p *pass) AddInteger(a, b rules.Value) rules.Value { return p.of("add", "4s", a, b) }

func (p *pass) ShiftLeft(a rules.Value, bits int) rules.Value {
	v := p.Vector()
	p.Arm("shl v%d.4s, v%d.4s, #%d", v, a, bits)
	return v
}

func (p *pass) ShiftRight(a rules.Value, bits int) rules.Value {
	v := p.Vector()
	p.Arm("ushr v%d.4s, v%d.4s, #%d", v, a, bits)
	return v
}

// wide is a pass whose elements are widened to float64 when they are loaded. Its coefficients and
// sums are float64, too.
type wide struct{ *pass }

func (p wide) Load(slice int) rules.Value {
	v := p.Vector()
	p.Arm("ldr d%d, [x%d, #%d]", v, p.slices[slice], p.part*p.elements*bytes)
	p.Arm("fcvtl v%d.2d, v%d.2s", v, v)
	return v
}

func (p wide) Store(v rules.Value, slice int) {
	half := p.Vector()
	p.Arm("fcvtn v%d.2s, v%d.2d", half, v)
	p.Arm("str d%d, [x%d, #%d]", half, p.slices[slice], p.part*p.elements*bytes)
}
