package ptx

import (
	"strings"

	"github.com/pkg/errors"
)

// rule defines an opcode's meaning for some types. reads lists the operands' types, and gives is
// the result's: t stands for the instruction's type, u for the unsigned integer of that size. In
// code, $1 is the first operand.
type rule struct{ opcode, types, reads, gives, code string }

// rules has the arithmetic instructions. To add one, write a row here and its meaning in
// meaning_test.go. An example is max.NaN.f32, whose C++ must take care of NaN and of zeros of both
// signs.
//
// The C++ of a rule must have the PTX ISA's meaning for all operands. canonical turns every NaN
// into the one that GPUs produce. Products and sums are not contracted (-ffp-contract=off), because
// fma is a separate instruction.
var rules = []rule{
	{"mov", "b16 b32 b64 u16 u32 u64 f32 f64 pred", "t", "t", "$1"},
	{"selp", "b16 b32 b64 u16 u32 u64 s32 s64 f32 f64", "t t pred", "t", "$3 ? $1 : $2"},

	// Integers wrap around.
	{"add", "s16 s32 s64 u64", "u u", "u", "$1 + $2"},
	{"sub", "s16 s32 s64", "u u", "u", "$1 - $2"},
	{"neg", "s16 s32", "u", "u", "0 - $1"},
	{"mul.lo", "s16 s32 s64", "u u", "u", "$1 * $2"},
	{"mad.lo", "s32 s64", "u u u", "u", "$1 * $2 + $3"},
	{"mul.hi", "u32", "t t", "t", "(U64)$1 * $2 >> 32"},
	{"mul.wide", "u16", "t t", "u32", "(U32)$1 * $2"},
	{"mul.wide", "u32", "t t", "u64", "(U64)$1 * $2"},
	{"mul.wide", "s32", "t t", "s64", "(S64)$1 * $2"},
	{"div", "s32 s64 u32 u64", "t t", "t", "quotient($1, $2)"},
	{"rem", "s32 s64 u32 u64", "t t", "t", "remainder($1, $2)"},
	{"min", "s32 u32 s64 u64", "t t", "t", "$1 < $2 ? $1 : $2"},
	{"max", "s32 u32", "t t", "t", "$1 > $2 ? $1 : $2"},
	{"and", "b16 b32 b64 pred", "t t", "t", "$1 & $2"},
	{"or", "b16 b32 b64 pred", "t t", "t", "$1 | $2"},
	{"xor", "b16 b32 b64 pred", "t t", "t", "$1 ^ $2"},
	{"not", "b32", "t", "t", "~$1"},
	{"not", "pred", "t", "t", "!$1"},
	{"shl", "b16 b32 b64", "t u32", "t", "shiftLeft($1, $2)"},
	{"shr", "u16 u32 u64 s32 s64", "t u32", "t", "shiftRight($1, $2)"},
	{"bfe", "s32 u32 u64", "t u32 u32", "t", "bitField($1, $2, $3)"},
	{"clz", "b64", "t", "u32", "leadingZeros($1)"},

	// Floating-point numbers: one rounding, to nearest, ties to even. Subnormal numbers are kept.
	{"add.rn", "f32 f64", "t t", "t", "canonical($1 + $2)"},
	{"sub.rn", "f32 f64", "t t", "t", "canonical($1 - $2)"},
	{"mul.rn", "f32 f64", "t t", "t", "canonical($1 * $2)"},
	{"fma.rn", "f32 f64", "t t t", "t", "canonical(multiplyAdd($1, $2, $3))"},
	{"div.rn", "f32 f64", "t t", "t", "canonical($1 / $2)"},
	{"rcp.rn", "f32 f64", "t", "t", "canonical(1 / $1)"},
	{"sqrt.rn", "f32 f64", "t", "t", "canonical(squareRoot($1))"},
	// Approximations: the nearest number; the hardware's result may differ slightly.
	{"rcp.approx.ftz", "f32", "t", "t", "canonical(flushed(1 / (F64)flushed($1)))"},
	{"rsqrt.approx.ftz", "f32", "t", "t", "canonical(flushed(1 / squareRoot((F64)flushed($1))))"},
	{"min", "f32 f64", "t t", "t", "canonical(smaller($1, $2))"},
	{"max", "f32 f64", "t t", "t", "canonical(-smaller(-$1, -$2))"},
	{"max.NaN", "f32", "t t", "t", "$1 > $2 ? $1 : $1 < $2 ? $2 : $1 == $2 && $1 != 0 ? $1 : canonical($1 + $2)"},
	{"neg", "f32 f64", "t", "t", "-$1"},
	{"abs", "f32 f64", "t", "t", "magnitude($1)"},
}

// comparisons of integers, and of floating-point numbers other than NaN.
var comparisons = map[string]string{"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}

// opposites maps each unordered comparison to ordered ones. The unordered one holds exactly when
// none of these does, and therefore also if a number is NaN.
var opposites = map[string]string{"equ": "lt gt", "neu": "eq", "ltu": "ge", "leu": "gt", "gtu": "le", "geu": "lt"}

// conversions by their full opcode, with the types that they read and give. The upper half of the
// first one's result comes from the first operand.
var conversions = []struct{ opcode, reads, gives, code string }{
	{"cvt.rn.bf16x2.f32", "f32 f32", "b32", "(U32)bf16($1) << 16 | bf16($2)"},
	{"cvt.rz.bf16x2.f32", "f32 f32", "b32", "(U32)bf16Down($1) << 16 | bf16Down($2)"},
	{"cvt.f64.f32", "f32", "f64", "canonical((F64)$1)"},
	{"cvt.rn.f32.f64", "f64", "f32", "canonical((F32)$1)"},
	{"cvt.rn.f32.s32", "s32", "f32", "(F32)$1"},
	{"cvt.rn.f32.u16", "u16", "f32", "(F32)$1"},
	{"cvt.rn.f32.u32", "u32", "f32", "(F32)$1"},
	{"cvt.rn.f32.u64", "u64", "f32", "(F32)$1"},
	{"cvt.rn.f64.s32", "s32", "f64", "(F64)$1"},
	{"cvt.rn.f64.u16", "u16", "f64", "(F64)$1"},
	{"cvt.rn.f64.u64", "u64", "f64", "(F64)$1"},
	{"cvt.rni.f32.f32", "f32", "f32", "canonical(nearest($1))"},
	{"cvt.rni.f64.f64", "f64", "f64", "canonical(nearest($1))"},
	{"cvt.rzi.f32.f32", "f32", "f32", "canonical(towardsZero($1))"},
	{"cvt.rzi.f64.f64", "f64", "f64", "canonical(towardsZero($1))"},
	{"cvt.rzi.s32.f32", "f32", "s32", "whole($1)"},
	{"cvt.rzi.s32.f64", "f64", "s32", "whole($1)"},
	{"cvt.s64.s32", "s32", "s64", "$1"},
	{"cvt.u64.u32", "u32", "u64", "$1"},
	{"cvt.u32.u64", "u64", "u32", "$1"},
	{"cvt.u32.u16", "u16", "u32", "$1"},
	{"cvt.u16.u32", "u32", "u16", "$1"},
}

// operation is an opcode with its type.
type operation struct {
	reads []string
	gives string
	code  string
}

// operations has all instructions that compute one register from others.
var operations = func() map[string]operation {
	all := map[string]operation{}
	for _, r := range rules {
		for _, kind := range strings.Fields(r.types) {
			of := func(name string) string {
				switch {
				case name == "t":
					return kind
				case name == "u":
					return "u" + kind[1:]
				}
				return name
			}
			o := operation{gives: of(r.gives), code: r.code}
			for _, name := range strings.Fields(r.reads) {
				o.reads = append(o.reads, of(name))
			}
			all[r.opcode+"."+kind] = o
		}
	}
	compare := func(name, kinds, code string) {
		for _, kind := range strings.Fields(kinds) {
			all["setp."+name+"."+kind] = operation{[]string{kind, kind}, "pred", code}
		}
	}
	for name, sign := range comparisons {
		compare(name, "s16 s32 s64 u16 u32 u64 b32 b64 f32 f64", "$1 "+sign+" $2")
	}
	// In C++, NaN is unequal to everything.
	compare("ne", "f32 f64", "$1 < $2 || $1 > $2")
	for name, others := range opposites {
		var either []string
		for _, other := range strings.Fields(others) {
			either = append(either, "$1 "+comparisons[other]+" $2")
		}
		compare(name, "f32 f64", "!("+strings.Join(either, " || ")+")")
	}
	compare("nan", "f32 f64", "isNaN($1) || isNaN($2)")
	compare("num", "f32 f64", "!isNaN($1) && !isNaN($2)")
	for _, c := range conversions {
		all[c.opcode] = operation{strings.Fields(c.reads), c.gives, c.code}
	}
	return all
}()

// compute translates one of the operations.
//
// Conversions may read and write registers that are wider than their type, as the PTX ISA allows;
// other instructions must match exactly, which finds mistakes of the translation itself.
func (e *entry) compute(opcode string, o operation, operands []string) (string, error) {
	if len(operands) != len(o.reads)+1 {
		return "", errors.Errorf("%d operands, must be %d", len(operands), len(o.reads)+1)
	}
	conversion := strings.HasPrefix(opcode, "cvt.")
	code := o.code
	for i, kind := range o.reads {
		value, err := e.value(operands[i+1], kind, conversion)
		if err != nil {
			return "", err
		}
		code = strings.ReplaceAll(code, "$"+string(rune('1'+i)), value)
	}
	if conversion {
		return e.write(operands[0], o.gives, code)
	}
	return e.writeSame(operands[0], o.gives, code)
}
