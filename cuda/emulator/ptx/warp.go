package ptx

import (
	"fmt"
	"strings"

	"github.com/pkg/errors"
)

// shuffle translates shfl.sync of a whole warp: result, value, mask or lane number, 31, all lanes.
func (e *entry) shuffle(function string, operands []string) (string, error) {
	if len(operands) != 5 || operands[3] != "31" || operands[4] != "-1" {
		return "", errors.New("a shuffle must be of a whole warp")
	}
	value, err := e.read(operands[1], "b32")
	if err != nil {
		return "", err
	}
	lane, err := e.read(operands[2], "b32")
	if err != nil {
		return "", err
	}
	return e.writeSame(operands[0], "b32", fmt.Sprintf("%s(%s, %s)", function, value, lane))
}

// fragment has the number of registers of an mma's operands, and the function that computes it.
type fragment struct {
	a, b int
	code string
}

var fragments = map[string]fragment{
	"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32":  {4, 2, "multiplyTF32"},
	"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32": {4, 2, "multiplyBF16"},
}

// multiply translates mma {d}, {a}, {b}, {c}: d = a b + c, in float32.
func (e *entry) multiply(f fragment, operands []string) (string, error) {
	if len(operands) != 4 {
		return "", errors.Errorf("%d operands, must be 4", len(operands))
	}
	var values [4][]string
	for i, count := range []int{4, f.a, f.b, 4} {
		values[i] = list(operands[i])
		if len(values[i]) != count {
			return "", errors.Errorf("%s has %d registers, must be %d", operands[i], len(values[i]), count)
		}
	}
	reads := func(registers []string, kind string) (string, error) {
		var all []string
		for _, register := range registers {
			value, err := e.read(register, kind)
			if err != nil {
				return "", err
			}
			all = append(all, value)
		}
		return strings.Join(all, ", "), nil
	}
	a, err := reads(values[1], "b32")
	if err != nil {
		return "", err
	}
	b, err := reads(values[2], "b32")
	if err != nil {
		return "", err
	}
	c, err := reads(values[3], "f32")
	if err != nil {
		return "", err
	}
	code := fmt.Sprintf("{ const U32 ab[6] = {%s, %s}; F32 d[4] = {%s}; %s(d, ab);", a, b, c, f.code)
	return e.writeEach(code, values[0], "f32", "d[%d]")
}

// matrix describes an ldmatrix: how many 8 x 8 matrices of 16-bit numbers it loads, and whether it
// transposes them.
type matrix struct {
	count      int
	transposed bool
}

var matrices = map[string]matrix{
	"ldmatrix.sync.aligned.m8n8.x1.shared.b16":       {1, false},
	"ldmatrix.sync.aligned.m8n8.x2.shared.b16":       {2, false},
	"ldmatrix.sync.aligned.m8n8.x4.shared.b16":       {4, false},
	"ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16": {1, true},
	"ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16": {2, true},
	"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16": {4, true},
}

// loadMatrix translates ldmatrix {registers}, [address]: each register gets two numbers of a
// matrix.
func (e *entry) loadMatrix(m matrix, operands []string) (string, error) {
	if len(operands) != 2 {
		return "", errors.Errorf("%d operands, must be 2", len(operands))
	}
	registers := list(operands[0])
	if len(registers) != m.count {
		return "", errors.Errorf("%d registers, must be %d", len(registers), m.count)
	}
	address, err := e.address(operands[1])
	if err != nil {
		return "", err
	}
	code := fmt.Sprintf("{ U32 words[%d]; loadMatrices<%d, %v>(words, shared, %s, %d);", m.count, m.count, m.transposed, address, e.line)
	return e.writeEach(code, registers, "b32", "words[%d]")
}

// writeEach returns a block that begins with code and then assigns to each register the value of
// its number.
func (e *entry) writeEach(code string, registers []string, kind, value string) (string, error) {
	for i, register := range registers {
		assign, err := e.writeSame(register, kind, fmt.Sprintf(value, i))
		if err != nil {
			return "", err
		}
		code += " " + assign
	}
	return code + " }", nil
}
