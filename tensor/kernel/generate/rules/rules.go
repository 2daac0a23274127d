// Package rules describes what the passes and the transforms of package kernel compute, for every
// instruction set. Each operation of a pass is correctly rounded, so that all of them, and portable
// Go, give the same bits.
package rules

import "strings"

// Value is a vector in a register, or an operand that the instruction set can read in place.
// Operations give new registers; their first value is one.
type Value any

// Rule is a pass over slices. Coefficients are its scalars; Wide ones compute in float64.
type Rule struct {
	Name                 string
	Slices, Coefficients int
	Sums, Wide           bool
	Operate              func(p Pass)
}

// Pass is a pass under way, at one vector of each slice.
type Pass interface {
	Load(slice int) Value
	Place(slice int) Value // as an operand
	Store(v Value, slice int)
	Coefficient(i int) Value // as an operand, in all lanes
	Held(i int) Value        // the same in a register
	Count(v Value)           // adds an operand to the sums
	Zero() Value

	Add(a, b Value) Value
	Subtract(a, b Value) Value
	Multiply(a, b Value) Value
	Divide(a, b Value) Value
	Root(a Value) Value
	Maximum(a, b Value) Value // a NaN where a is one
	Minimum(a, b Value) Value
	WhereLess(a, b, v Value) Value     // v where a < b, else 0
	WhereNotEqual(a, b, v Value) Value // v where a differs from b, else 0

	Sign() Value // the bit of the sign alone
	And(a, b Value) Value
	AndNot(a, b Value) Value // b without the bits of a
	Or(a, b Value) Value
	Xor(a, b Value) Value
	AddInteger(a, b Value) Value
	ShiftLeft(a Value, bits int) Value
}

// capitals are the names of functions of package kernel that are more than a name here with a
// capital letter.
var capitals = map[string]string{
	"silu": "SiLU", "siluGradient": "SiLUGradient", "elu": "ELU", "sgld": "SGLD", "psgld": "PSGLD", "sghmc": "SGHMC", "baoab": "BAOAB", "sgd": "SGD",
	"rmsprop": "RMSProp",
}

// Function is the function of package kernel that uses the rule.
func (r Rule) Function() string {
	if name, ok := capitals[r.Name]; ok {
		return name
	}
	return strings.ToUpper(r.Name[:1]) + r.Name[1:]
}
