package ptx

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pkg/errors"
)

// sharedBegin is the first address of shared memory; on newer GPUs the system reserves the
// addresses below. localBegin is the first address of local memory.
const sharedBegin, localBegin = 1 << 10, 1 << 28

// sharedGap separates arrays of shared memory, so that an access beyond the end of one is not
// inside another.
const sharedGap = 64

// translate reads the body and writes a function and its registration. For example,
//
//	.visible .entry f(.param .u32 f_param_0) .maxntid 64, 1, 1
//	{
//	.reg .b32 %r<2>;
//	ld.param.u32 %r1, [f_param_0];
//	add.s32 %r1, %r1, 1;
//	ret;
//	}
//
// becomes a function run_f, in which %r1 is the variable v_r1, each instruction is a statement, and
// a branch to $L__BB0_1 is goto at_L__BB0_1.
func (e *entry) translate(into *strings.Builder, m *module) error {
	used := e.placeArrays(m)
	for {
		line, more := m.read()
		if !more {
			return errors.New("the body must end with }")
		}
		if line == "}" {
			break
		}
		e.line = m.line
		if err := e.statement(line); err != nil {
			return err
		}
	}
	var list []string
	for _, p := range e.parameters {
		list = append(list, fmt.Sprintf("{%d, '%c'}", p.bytes, p.kind))
	}
	fmt.Fprintf(into, "static const pollen::Parameter of_%s[] = {%s};\n", e.name, strings.Join(list, ", "))
	fmt.Fprintf(into, "static void run_%s(void* const* arguments) {\n", e.name)
	into.WriteString(used)
	fmt.Fprintf(into, "  Local<%d> local; (void)local; (void)arguments; (void)shared;\n", e.local)
	for _, declaration := range e.order {
		into.WriteString(declaration)
	}
	into.WriteString(e.code.String())
	into.WriteString("}\n")
	fmt.Fprintf(into, "static const bool added_%s = pollen::addKernel(%q, %d, of_%s, %d, run_%s, false);\n", e.name, e.name, e.threads, e.name, len(list), e.name)
	return nil
}

// placeArrays assigns addresses to the file's arrays that the body names, the dynamic one last, and
// returns the declaration of shared memory. Each kernel has only the arrays that it uses, as on a
// GPU.
func (e *entry) placeArrays(m *module) string {
	names := map[string]bool{}
	for _, line := range m.lines[m.line:] {
		if line == "}" {
			break
		}
		if strings.HasPrefix(line, "$") {
			continue
		}
		for _, word := range strings.FieldsFunc(line, func(c rune) bool { return strings.ContainsRune(" ,;[]+{}", c) }) {
			if _, found := m.arrays[word]; found {
				names[word] = true
			}
		}
	}
	var arrays []array
	for name := range names {
		arrays = append(arrays, m.arrays[name])
	}
	slices.SortFunc(arrays, func(a, b array) int {
		if a.dynamic != b.dynamic {
			return map[bool]int{false: -1, true: 1}[a.dynamic]
		}
		return strings.Compare(a.name, b.name)
	})
	var ranges []string
	end := sharedBegin
	for _, a := range arrays {
		align := max(16, a.align)
		begin := (end + align - 1) / align * align
		bytes := fmt.Sprint(a.bytes)
		if a.dynamic {
			bytes = "pollen::dynamicBytes()"
		}
		ranges = append(ranges, fmt.Sprintf("{%d, %s}", begin, bytes))
		e.symbols[a.name] = fmt.Sprintf("%dull", begin)
		end = begin + a.bytes
		if !a.dynamic {
			end += sharedGap
		}
	}
	if len(arrays) == 0 {
		return "  NoShared shared;\n"
	}
	return fmt.Sprintf("  Shared<%d> shared({%s});\n", len(arrays), strings.Join(ranges, ", "))
}

// statement translates a line of the body.
func (e *entry) statement(line string) error {
	switch {
	case line == "" || line == `.pragma "nounroll";`:
		return nil
	case strings.HasPrefix(line, "."):
		return e.declaration(line)
	case strings.HasSuffix(line, ":"):
		fmt.Fprintf(&e.code, "%s:;\n", label(strings.TrimSuffix(line, ":")))
		return nil
	case strings.HasPrefix(line, "{"):
		return e.block(line)
	}
	text, ended := strings.CutSuffix(line, ";")
	if !ended {
		return errors.Errorf("%q must end with a semicolon", line)
	}
	return e.instruction(text)
}

// declaration reads a declaration: registers, or local memory.
func (e *entry) declaration(line string) error {
	if found := registersLine.FindStringSubmatch(line); found != nil {
		return e.declare(found[2], found[1], number(found[3]))
	}
	if found := registerLine.FindStringSubmatch(line); found != nil && strings.HasPrefix(found[2], "%") {
		return e.declare(found[2], found[1], -1)
	}
	if found := localLine.FindStringSubmatch(line); found != nil {
		if e.local > 0 {
			return errors.Errorf("%q: a second array in local memory", line)
		}
		e.local = number(found[3])
		e.symbols[found[2]] = fmt.Sprintf("%dull", localBegin)
		return nil
	}
	return errors.Errorf("%q is not supported", line)
}

// declare declares count registers, whose names end in a number, or a single one if count is
// negative.
func (e *entry) declare(name, kind string, count int) error {
	if initial[kind] == "" {
		return errors.Errorf("registers of type %s are not supported", kind)
	}
	e.registers[name] = registers{kind, count}
	return nil
}

// block translates { statements } on one line, which may declare registers.
func (e *entry) block(line string) error {
	text, ended := strings.CutSuffix(line, "}")
	if !ended {
		return errors.Errorf("%q: a block of several lines", line)
	}
	e.inner = map[string]string{}
	defer func() { e.inner = nil }()
	e.code.WriteString("{\n")
	for _, statement := range strings.Split(text[1:], ";") {
		statement = strings.TrimSpace(statement)
		if statement == "" {
			continue
		}
		if !strings.HasPrefix(statement, ".reg ") {
			if err := e.instruction(statement); err != nil {
				return err
			}
			continue
		}
		found := registerLine.FindStringSubmatch(statement + ";")
		if found == nil || initial[found[1]] == "" {
			return errors.Errorf("%q is not supported", statement)
		}
		e.inner[found[2]] = found[1]
		fmt.Fprintf(&e.code, "%s %s = %s;\n", cxx[found[1]], variable(found[2]), initial[found[1]])
	}
	e.code.WriteString("}\n")
	return nil
}

// instruction translates an instruction without its semicolon.
func (e *entry) instruction(text string) error {
	guard := ""
	if strings.HasPrefix(text, "@") {
		predicate, rest, _ := strings.Cut(text[1:], " ")
		text = rest
		not := ""
		if strings.HasPrefix(predicate, "!") {
			not, predicate = "!", predicate[1:]
		}
		value, err := e.read(predicate, "pred")
		if err != nil {
			return err
		}
		guard = "if (" + not + value + ") "
	}
	opcode, rest, _ := strings.Cut(text, " ")
	operands, err := split(rest)
	if err != nil {
		return errors.WithMessage(err, text)
	}
	code, err := e.operation(opcode, operands)
	if err != nil {
		return errors.WithMessage(err, text)
	}
	e.code.WriteString(guard)
	e.code.WriteString(code)
	e.code.WriteString("\n")
	return nil
}

// split splits operands at the commas outside of braces and brackets.
func split(text string) ([]string, error) {
	var all []string
	depth, from := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ',':
			if depth == 0 {
				all = append(all, strings.TrimSpace(text[from:i]))
				from = i + 1
			}
		}
	}
	if depth != 0 {
		return nil, errors.New("its braces do not match")
	}
	if rest := strings.TrimSpace(text[from:]); rest != "" {
		all = append(all, rest)
	}
	return all, nil
}
