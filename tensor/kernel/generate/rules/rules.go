// Package rules describes what the passes and transforms of package kernel compute, once for all
// instruction sets. SGLD, for example, is: load w and g, subtract rate times g, add scale times the
// noise, store w. Each operation of a pass is correctly rounded, so all instruction sets, and
// portable Go, give the same bits.
package rules

import "strings"

// Value is a vector in a register, or an operand that the instruction set can read from memory.
// Operations return new registers and need a register as their first value.
type Value any

// Rule is a pass over slices. Coefficients is its number of scalars; Wide rules compute in float64.
// The instructions of Alternating rules alternate between vectors, where an instruction set has
// registers for that: each of their many operations needs the result of the one before.
type Rule struct {
	Name                 string
	Slices, Coefficients int
	Sums, Wide           bool
	Alternating          bool
	Operate              func(p Pass)
}

// Pass is the context of a rule: one vector of each slice.
type Pass interface {
	Load(slice int) Value
	Place(slice int) Value // as an operand
	Store(v Value, slice int)
	Coefficient(i int) Value // as an operand, broadcast to all lanes
	Held(i int) Value        // the same coefficient in a register
	Count(v Value)           // adds an operand to the sums
	Zero() Value

	Add(a, b Value) Value
	Subtract(a, b Value) Value
	Multiply(a, b Value) Value
	Divide(a, b Value) Value
	// AddProduct and SubtractProduct return a b + c and c - a b, rounded once. This equals Multiply
	// and Add if the product is exact. They may overwrite a and c, respectively.
	AddProduct(a, b, c Value) Value
	SubtractProduct(c, a, b Value) Value
	Root(a Value) Value
	Maximum(a, b Value) Value // NaN where a is NaN
	Minimum(a, b Value) Value
	WhereLess(a, b, v Value) Value     // v where a < b, else 0
	WhereNotEqual(a, b, v Value) Value // v where a differs from b, else 0

	Sign() Value // only the sign bit
	And(a, b Value) Value
	AndNot(a, b Value) Value // b &^ a
	Or(a, b Value) Value
	Xor(a, b Value) Value
	AddInteger(a, b Value) Value
	ShiftLeft(a Value, bits int) Value
	ShiftRight(a Value, bits int) Value // zeros come in
}

// capitals maps rules to functions of package kernel whose names differ in more than the first
// letter's case.
var capitals = map[string]string{
	"silu": "SiLU", "siluGradient": "SiLUGradient", "elu": "ELU", "gelu": "GELU", "sgld": "SGLD", "psgld": "PSGLD", "sghmc": "SGHMC", "baoab": "BAOAB", "sgd": "SGD",
	"rmsprop": "RMSProp",
}

// Function returns the name of the function of package kernel that uses the rule.
func (r Rule) Function() string {
	if name, ok := capitals[r.Name]; ok {
		return name
	}
	return strings.ToUpper(r.Name[:1]) + r.Name[1:]
}
