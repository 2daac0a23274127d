package ptx

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pkg/errors"
)

// operation translates an instruction without a guard predicate.
//
// An opcode that is not listed is an error at translation, with the line: the emulator never
// guesses what an instruction does.
func (e *entry) operation(opcode string, operands []string) (string, error) {
	wants := func(n int) error {
		if len(operands) != n {
			return errors.Errorf("%d operands, must be %d", len(operands), n)
		}
		return nil
	}
	switch opcode {
	case "ret":
		return "return;", wants(0)
	case "bra", "bra.uni":
		if err := wants(1); err != nil {
			return "", err
		}
		return "goto " + label(operands[0]) + ";", nil
	case "bar.sync":
		if err := wants(1); err != nil || operands[0] != "0" {
			return "", errors.New("a barrier must be number 0, of the whole block")
		}
		return "pollen::wait(pollen::Wait::Block);", nil
	case "bar.warp.sync":
		if err := wants(1); err != nil || operands[0] != "-1" {
			return "", errors.New("a barrier must be of a whole warp")
		}
		return "pollen::wait(pollen::Wait::Warp);", nil
	case "cvta.global.u64", "cvta.to.global.u64", "cvta.shared.u64", "cvta.to.shared.u64":
		if err := wants(2); err != nil {
			return "", err
		}
		return e.compute("mov.b64", operations["mov.b64"], operands)
	case "trap":
		return `pollen::fault("traps");`, wants(0)
	case "griddepcontrol.wait":
		return "pollen::waitForGrid();", wants(0)
	case "griddepcontrol.launch_dependents":
		return "pollen::letNextBegin();", wants(0)
	case "prefetch.global.L2":
		if err := wants(1); err != nil {
			return "", err
		}
		address, err := e.address(operands[0])
		return "(void)(" + address + ");", err
	case "shfl.sync.bfly.b32":
		return e.shuffle("shuffleXor", operands)
	case "shfl.sync.idx.b32":
		return e.shuffle("shuffleFrom", operands)
	case "cp.async.commit_group":
		return "pollen::copyCommit();", wants(0)
	case "cp.async.wait_group":
		if err := wants(1); err != nil {
			return "", err
		}
		count, err := immediate(operands[0], "s32")
		return "pollen::copyWait(" + count + ");", err
	case "cp.async.ca.shared.global", "cp.async.cg.shared.global":
		return e.copyAsync(opcode, operands)
	}
	if code, is, err := e.groupOperation(opcode, operands); is {
		return code, err
	}
	if f, found := fragments[opcode]; found {
		return e.multiply(f, operands)
	}
	if f, found := matrices[opcode]; found {
		return e.loadMatrix(f, operands)
	}
	if strings.HasPrefix(opcode, "ld.") || strings.HasPrefix(opcode, "st.") {
		return e.access(opcode, operands)
	}
	if half, found := halves[opcode]; found && len(operands) == 2 && strings.HasPrefix(operands[0], "{") {
		return e.unpack(half, operands)
	}
	if o, found := operations[opcode]; found {
		return e.compute(opcode, o, operands)
	}
	return "", errors.Errorf("unknown opcode %s", opcode)
}

// halves has the types of the halves into which a mov splits a register.
var halves = map[string]string{"mov.b32": "b16", "mov.b64": "b32"}

// unpack translates mov {lower, upper}, whole.
func (e *entry) unpack(half string, operands []string) (string, error) {
	into := list(operands[0])
	if len(into) != 2 {
		return "", errors.New("a mov must have two halves")
	}
	whole, err := e.read(operands[1], fmt.Sprint("b", 2*bits(half)))
	if err != nil {
		return "", err
	}
	code := "{ const U64 whole = " + whole + ";"
	for i, register := range into {
		assign, err := e.writeSame(register, half, fmt.Sprintf("(%s)(whole >> %d)", cxx[half], i*bits(half)))
		if err != nil {
			return "", err
		}
		code += " " + assign
	}
	return code + " }", nil
}

// spaces has the types that loads and stores move in each space, and whether they may be vectors.
var spaces = map[string]struct {
	kinds   string
	vectors bool
}{
	"global":    {"u8 u32 u64 f32 f64", true},
	"global.nc": {"f32 f64", true},
	"shared":    {"s32 u32 u64 f32 f64", true},
	"local":     {"f32 f64", false},
	"param":     {"s32 u32 u64 f32 f64", true},
}

// access translates loads and stores: ld.space.vector.type register(s), [address].
//
// The combinations of space and type are those that the kernels use. Others exist, but no test
// would show that they are translated correctly.
func (e *entry) access(opcode string, operands []string) (string, error) {
	parts := strings.Split(opcode, ".")
	kind, parts := parts[len(parts)-1], parts[:len(parts)-1]
	count := 1
	if last := parts[len(parts)-1]; last == "v2" || last == "v4" {
		count, parts = number(last[1:]), parts[:len(parts)-1]
	}
	store, name := parts[0] == "st", strings.Join(parts[1:], ".")
	space, found := spaces[name]
	if !found || !slices.Contains(strings.Fields(space.kinds), kind) || store && (name == "param" || name == "global.nc") ||
		count > 1 && (!space.vectors || bits(kind) < 32 || count*bits(kind) > 128) {
		return "", errors.Errorf("unknown opcode %s", opcode)
	}
	if len(operands) != 2 {
		return "", errors.Errorf("%d operands, must be 2", len(operands))
	}
	place, values := operands[1], list(operands[0])
	if store {
		place, values = operands[0], list(operands[1])
	}
	if len(values) != count {
		return "", errors.Errorf("%d registers, must be %d", len(values), count)
	}
	address, err := e.address(place)
	if err != nil {
		return "", err
	}
	bytes := count * bits(kind) / 8
	where := map[string]string{
		"global": "global<%d>(%s, %d)", "global.nc": "global<%d>(%s, %d)", "local": "local.at<%d>(%s, %d)", "shared": "shared.reads<%d>(%s, %d)",
	}[name]
	if name == "shared" && store {
		where = "shared.writes<%d>(%s, %d)"
	}
	if name == "param" {
		where = e.parameterPlace(place, address, bytes)
	} else {
		where = fmt.Sprintf(where, bytes, address, e.line)
	}
	var code strings.Builder
	fmt.Fprintf(&code, "{ %s* at = (%s*)%s;", cxx[kind], cxx[kind], where)
	for i, one := range values {
		assign := ""
		if store {
			value := ""
			value, err = e.readLow(one, kind)
			assign = fmt.Sprintf("at[%d] = %s;", i, value)
		} else {
			assign, err = e.write(one, kind, fmt.Sprintf("at[%d]", i))
		}
		if err != nil {
			return "", err
		}
		code.WriteString(" " + assign)
	}
	code.WriteString(" }")
	return code.String(), nil
}

// parameterPlace returns the address of an access to a parameter. An access that is known here to
// lie in a parameter is not checked again at run time.
func (e *entry) parameterPlace(place, address string, bytes int) string {
	base, offset, _ := strings.Cut(place[1:len(place)-1], "+")
	for i, p := range e.parameters {
		if at := number(offset); p.name == base && at%bytes == 0 && at+bytes <= p.bytes {
			return fmt.Sprintf("((char*)arguments[%d] + %d)", i, at)
		}
	}
	return fmt.Sprintf("parameter<%d>(arguments, of_%s, %d, %s, %d)", bytes, e.name, len(e.parameters), address, e.line)
}

// copyAsync translates cp.async [to], [from], bytes, ignore. If the predicate ignore is set, it
// writes zeros and does not access from.
//
// The copy is performed when the thread waits for its group. Until then the destination holds NaN,
// so that a missing wait is found.
func (e *entry) copyAsync(opcode string, operands []string) (string, error) {
	if len(operands) != 4 {
		return "", errors.Errorf("%d operands, must be 4", len(operands))
	}
	// cp.async.ca copies 4, 8 or 16 bytes through L1, cp.async.cg 16 bytes past it.
	if n := operands[2]; n != "16" && (opcode != "cp.async.ca.shared.global" || n != "4" && n != "8") {
		return "", errors.Errorf("%s of %s bytes", opcode, n)
	}
	to, err := e.address(operands[0])
	if err != nil {
		return "", err
	}
	from, err := e.address(operands[1])
	if err != nil {
		return "", err
	}
	not, err := e.read(operands[3], "pred")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("shared.copy<%s>(%s, %s, %s, %d);", operands[2], to, from, not, e.line), nil
}
