package ptx

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/pkg/errors"
)

// cxx maps PTX types to C++ types. Bit types are unsigned.
var cxx = map[string]string{
	"pred": "bool", "b8": "U8", "b16": "U16", "b32": "U32", "b64": "U64", "u8": "U8", "u16": "U16", "u32": "U32", "u64": "U64",
	"s8": "S8", "s16": "S16", "s32": "S32", "s64": "S64", "f32": "F32", "f64": "F64",
}

func bits(kind string) int {
	if kind == "pred" {
		return 1
	}
	return number(kind[1:])
}

func isFloat(kind string) bool { return kind[0] == 'f' }

// specials are the special registers of a thread's position, and the upper half of the global
// timer, which stands still: code reads the time only while it waits for others, and the emulator
// detects waits that never end.
var specials = map[string]string{
	"%tid.x": "pollen::here.thread.x", "%ntid.x": "pollen::here.threads.x",
	"%ctaid.x": "pollen::here.block.x", "%ctaid.y": "pollen::here.block.y", "%ctaid.z": "pollen::here.block.z",
	"%nctaid.x": "pollen::here.blocks.x", "%nctaid.y": "pollen::here.blocks.y", "%nctaid.z": "pollen::here.blocks.z",
	"%globaltimer_hi": "0u",
}

// initial is the value of a register before it is written to.
//
// Reading such a register is no error in PTX. On a GPU it gives whatever the register held before;
// here it gives NaN or a large number, in every run.
var initial = map[string]string{
	"pred": "false", "b16": "(U16)unwritten32", "b32": "unwritten32", "b64": "unwritten64", "f32": "number(unwritten32)", "f64": "number(unwritten64)",
}

func variable(register string) string { return "v_" + strings.TrimPrefix(register, "%") }

// register returns the type and the variable of a register, and declares the variable at its first
// use.
//
// PTX declares ranges, such as %r<40> for %r0 to %r39, which are far more than most entries use.
// Variables that are declared at their first use keep the C++ short.
func (e *entry) register(name string) (kind, code string, err error) {
	if kind, found := e.inner[name]; found {
		return kind, variable(name), nil
	}
	r, found := e.registers[name]
	if !found {
		prefix := strings.TrimRight(name, "0123456789")
		n := number(name[len(prefix):])
		if r, found = e.registers[prefix]; !found || n >= r.count || prefix == name {
			return "", "", errors.Errorf("register %s is not declared", name)
		}
	}
	code = variable(name)
	if !e.declared[name] {
		e.declared[name] = true
		e.order = append(e.order, fmt.Sprintf("  %s %s = %s;\n", cxx[r.kind], code, initial[r.kind]))
	}
	return r.kind, code, nil
}

// read returns an operand's value, in the C++ type of a PTX type. PTX lets an instruction read a
// register of another type of the same size: as bits, not as a number.
func (e *entry) read(operand, kind string) (string, error) { return e.value(operand, kind, false) }

// readLow also accepts a register that is wider than the type, and takes its lower bits, as stores
// and conversions do.
func (e *entry) readLow(operand, kind string) (string, error) { return e.value(operand, kind, true) }

func (e *entry) value(operand, kind string, low bool) (string, error) {
	_, inner := e.inner[operand]
	switch {
	case specials[operand] != "":
		if kind != "u32" && kind != "b32" {
			return "", errors.Errorf("%s has 32 bits", operand)
		}
		return specials[operand], nil
	case inner || strings.HasPrefix(operand, "%"):
		of, code, err := e.register(operand)
		switch {
		case err != nil:
			return "", err
		case (of == "pred") != (kind == "pred") || bits(of) < bits(kind) || bits(of) > bits(kind) && (!low || isFloat(of) || isFloat(kind)):
			return "", errors.Errorf("%s, of type %s, cannot be read as %s", operand, of, kind)
		case isFloat(of) && kind[0] != 'f' && kind[0] != 'b':
			return "", errors.Errorf("%s, of type %s, cannot be read as %s", operand, of, kind)
		case isFloat(of) && !isFloat(kind):
			return "bitsOf(" + code + ")", nil
		case isFloat(kind) && !isFloat(of):
			return "number(" + code + ")", nil
		case cxx[of] == cxx[kind]:
			return code, nil
		}
		return "(" + cxx[kind] + ")" + code, nil
	}
	if code, found := e.symbols[operand]; found {
		if bits(kind) != 64 || isFloat(kind) {
			return "", errors.Errorf("address %s is read as %s", operand, kind)
		}
		return code, nil
	}
	return immediate(operand, kind)
}

// immediate returns the value of a literal.
//
// PTX writes floating-point literals as bits, 0f3F800000 for 1, so that no digits are lost in
// decimal.
func immediate(text, kind string) (string, error) {
	for _, form := range []struct {
		prefix string
		digits int
		kind   string
	}{{"0f", 8, "f32"}, {"0d", 16, "f64"}} {
		digits, found := strings.CutPrefix(text, form.prefix)
		if !found || len(digits) != form.digits {
			continue
		}
		if _, err := strconv.ParseUint(digits, 16, 64); err != nil || bits(kind) != bits(form.kind) || kind[0] == 's' || kind[0] == 'u' {
			return "", errors.Errorf("%s is not of type %s", text, kind)
		}
		word := "(U" + form.kind[1:] + ")0x" + digits + "ull"
		if isFloat(kind) {
			word = "number(" + word + ")"
		}
		return word, nil
	}
	signed, err := strconv.ParseInt(text, 0, 64)
	word := uint64(signed)
	if err != nil {
		if word, err = strconv.ParseUint(text, 0, 64); err != nil {
			return "", errors.Errorf("unknown operand %s", text)
		}
	}
	if isFloat(kind) {
		return "", errors.Errorf("%s is not of type %s", text, kind)
	}
	if kind == "pred" {
		return fmt.Sprint(word != 0), nil
	}
	return fmt.Sprintf("(%s)0x%xull", cxx[kind], word), nil
}

// write assigns a value of a PTX type to a register. If the register is wider, the integer is
// extended by its sign or by zeros.
func (e *entry) write(register, kind, value string) (string, error) {
	of, code, err := e.register(register)
	switch {
	case err != nil:
		return "", err
	case (of == "pred") != (kind == "pred") || bits(of) < bits(kind) || bits(of) > bits(kind) && (isFloat(of) || isFloat(kind)):
		return "", errors.Errorf("%s, of type %s, cannot hold a %s", register, of, kind)
	case isFloat(of) && kind[0] != 'f' && kind[0] != 'b':
		return "", errors.Errorf("%s, of type %s, cannot hold a %s", register, of, kind)
	case isFloat(of) && !isFloat(kind):
		return fmt.Sprintf("%s = number((%s)(%s));", code, cxx[kind], value), nil
	case isFloat(kind) && !isFloat(of):
		return fmt.Sprintf("%s = bitsOf(%s);", code, value), nil
	case isFloat(kind) || kind == "pred":
		return fmt.Sprintf("%s = %s;", code, value), nil
	}
	if cxx[of] != cxx[kind] {
		value = fmt.Sprintf("(%s)(%s)", cxx[kind], value)
	}
	return fmt.Sprintf("%s = (%s)(%s);", code, cxx[of], value), nil
}

// writeSame is like write, but the register must not be wider than the type.
func (e *entry) writeSame(register, kind, value string) (string, error) {
	if of, _, err := e.register(register); err == nil && bits(of) != bits(kind) {
		return "", errors.Errorf("%s, of type %s, cannot hold a %s", register, of, kind)
	}
	return e.write(register, kind, value)
}

// address translates [base], [base+offset] or [name+offset].
//
// Global addresses are pointers of this machine. Shared, local and parameter memory have separate,
// small addresses, which the accessors of ptx/memory.h translate and check.
func (e *entry) address(operand string) (string, error) {
	if !strings.HasPrefix(operand, "[") || !strings.HasSuffix(operand, "]") {
		return "", errors.Errorf("%s is not an address", operand)
	}
	base, offset, has := strings.Cut(operand[1:len(operand)-1], "+")
	kind := "b64"
	if of, _, err := e.register(base); err == nil && bits(of) == 32 {
		kind = "b32" // of shared memory
	}
	code, err := e.read(base, kind)
	if err != nil {
		return "", err
	}
	if !has {
		return "(U64)(" + code + ")", nil
	}
	n, err := strconv.ParseInt(offset, 0, 64)
	if err != nil {
		return "", errors.Errorf("%s is not an address", operand)
	}
	return fmt.Sprintf("(U64)(%s) + 0x%xull", code, uint64(n)), nil
}

// list returns the operands in braces, or the single one without.
func list(operand string) []string {
	inside, found := strings.CutPrefix(operand, "{")
	if !found {
		return []string{operand}
	}
	var all []string
	for _, one := range strings.Split(strings.TrimSuffix(inside, "}"), ",") {
		all = append(all, strings.TrimSpace(one))
	}
	return all
}
