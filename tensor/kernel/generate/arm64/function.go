// Package arm64 writes Go assembly for 64-bit Arm. Go's assembler lacks most vector instructions;
// those are written in Arm's own syntax and become WORDs, whose values LLVM's assembler computes.
// The rest is in Go's syntax.
//
// A function uses any number of virtual registers. They are allocated when it is complete, by
// linear scan: each register holds its value from the first line that names it to the last, or to
// the end of a loop that needs it again.
package arm64

import (
	"fmt"
	"go/ast"
	"go/parser"
	"slices"
)

// V is a virtual vector register and X a virtual general one, numbered within a function.
type (
	V int
	X int
)

// Function is a function that is being written.
type Function struct {
	name, signature, doc string
	parameters           []parameter
	size                 int // bytes of the parameters
	lines                []line
	vectors, generals    int // numbers of virtual registers
}

type parameter struct {
	name, kind string
	offset     int
}

// line is a label, or an instruction whose arguments are registers, numbers and labels.
type line struct {
	format string
	args   []any
	vector bool // in Arm's syntax
	label  string
}

// Arm writes an instruction in Arm's syntax, for example Arm("fadd v%d.4s, v%d.4s, v%d.4s", sum, a,
// b).
func (f *Function) Arm(format string, args ...any) {
	f.lines = append(f.lines, line{format: format, args: args, vector: true})
}

// Go writes an instruction in the syntax of Go's assembler, for example Go("ADD $%d, R%d", 16,
// pointer). Pass labels as arguments, so that loops are found.
func (f *Function) Go(format string, args ...any) {
	f.lines = append(f.lines, line{format: format, args: args})
}

// Label marks a place to branch to.
func (f *Function) Label(name string) { f.lines = append(f.lines, line{label: name}) }

// Vector returns a new vector register.
func (f *Function) Vector() V {
	f.vectors++
	return V(f.vectors - 1)
}

// General returns a new general register.
func (f *Function) General() X {
	f.generals++
	return X(f.generals - 1)
}

// Param loads a parameter that is a number or an address.
func (f *Function) Param(name string) X {
	p := f.parameter(name)
	move, ok := map[string]string{"int": "MOVD", "pointer": "MOVD", "uint32": "MOVWU", "bool": "MOVBU"}[p.kind]
	if !ok {
		panic(fmt.Sprintf("%s: parameter %s is no number", f.name, name))
	}
	r := f.General()
	f.Go(fmt.Sprintf("%s %s+%d(FP), R%%d", move, p.name, p.offset), r)
	return r
}

// Keep stores a register to a parameter that is an 8-byte number or an address.
func (f *Function) Keep(name string, r X) {
	p := f.parameter(name)
	f.Go(fmt.Sprintf("MOVD R%%d, %s+%d(FP)", p.name, p.offset), r)
}

// Advance adds by to a parameter in memory that is an 8-byte number or an address.
func (f *Function) Advance(name string, by X) {
	r := f.Param(name)
	f.Go("ADD R%d, R%d", by, r)
	f.Keep(name, r)
}

// Bytes loads a parameter that counts float32, converted to bytes.
func (f *Function) Bytes(name string) X {
	r := f.Param(name)
	f.Go("LSL $2, R%d", r)
	return r
}

// Lanes loads a float32 or a uint32 parameter into all lanes of a vector.
func (f *Function) Lanes(name string) V {
	p, v := f.parameter(name), f.Vector()
	f.Go(fmt.Sprintf("FMOVS %s+%d(FP), F%%d", p.name, p.offset), v)
	f.Arm("dup v%d.4s, v%d.s[0]", v, v)
	return v
}

func (f *Function) parameter(name string) parameter {
	i := slices.IndexFunc(f.parameters, func(p parameter) bool { return p.name == name })
	if i < 0 {
		panic(fmt.Sprintf("%s: no parameter %s", f.name, name))
	}
	return f.parameters[i]
}

// parse computes the offsets of the parameters, which follow one another, each aligned to its size.
func (f *Function) parse() {
	expression, err := parser.ParseExpr(f.signature)
	if err != nil {
		panic(fmt.Sprintf("%s: %s: %v", f.name, f.signature, err))
	}
	for _, field := range expression.(*ast.FuncType).Params.List {
		kind := "pointer"
		if name, plain := field.Type.(*ast.Ident); plain {
			kind = name.Name
		}
		size := map[string]int{"int": 8, "pointer": 8, "uint32": 4, "float32": 4, "bool": 1}[kind]
		for _, name := range field.Names {
			f.size = (f.size + size - 1) / size * size
			f.parameters = append(f.parameters, parameter{name.Name, kind, f.size})
			f.size += size
		}
	}
}

// text returns the line with machine registers in place of virtual ones.
func (l line) text(vectors, generals []int) string {
	args := make([]any, len(l.args))
	for i, a := range l.args {
		switch a := a.(type) {
		case V:
			args[i] = vectors[a]
		case X:
			args[i] = generals[a]
		default:
			args[i] = a
		}
	}
	return fmt.Sprintf(l.format, args...)
}

// vectorMark starts the lines of emit that are in Arm's syntax.
const vectorMark = "\x00"

// emit returns the function's lines with allocated registers; labels end in a colon.
func (f *Function) emit() (lines []string) {
	vectors := f.allocate(f.vectors, vectorRegisters, func(a any) (int, bool) { v, ok := a.(V); return int(v), ok })
	generals := f.allocate(f.generals, generalRegisters, func(a any) (int, bool) { x, ok := a.(X); return int(x), ok })
	for _, l := range f.lines {
		switch {
		case l.label != "":
			lines = append(lines, l.label+":")
		case l.vector:
			lines = append(lines, vectorMark+l.text(vectors, generals))
		default:
			lines = append(lines, l.text(vectors, generals))
		}
	}
	return lines
}
