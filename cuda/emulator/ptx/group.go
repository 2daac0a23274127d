package ptx

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pkg/errors"
)

// groupOperation translates the instructions of compute capability 9.0: mbarriers, bulk copies, and
// wgmma. It returns false for other instructions. Forms that the kernels do not use, such as an
// arrival that returns a state, are errors.
func (e *entry) groupOperation(opcode string, operands []string) (code string, is bool, err error) {
	form, found := groupForms[opcode]
	if match := asyncProduct.FindStringSubmatch(opcode); match != nil {
		code, err = e.multiplyAsync(number(match[1]), operands)
		return code, true, err
	}
	if !found {
		return "", false, nil
	}
	if len(operands) != len(form.operands) {
		return "", true, errors.Errorf("%d operands, must be %d", len(operands), len(form.operands))
	}
	var values []any
	for i, kind := range form.operands {
		value := ""
		switch kind {
		case "_":
			if operands[i] != "_" {
				return "", true, errors.Errorf("the state %s is not supported", operands[i])
			}
			continue
		case "pred": // the result
			continue
		case "address":
			value, err = e.address(operands[i])
		case "constant":
			value, err = immediate(operands[i], "s32")
		default:
			value, err = e.read(operands[i], kind)
		}
		if err != nil {
			return "", true, err
		}
		values = append(values, value)
	}
	code = fmt.Sprintf(strings.ReplaceAll(form.code, "LINE", fmt.Sprint(e.line)), values...)
	if form.operands != nil && form.operands[0] == "pred" {
		code, err = e.write(operands[0], "pred", code)
		return code, true, err
	}
	return code + ";", true, nil
}

// groupForms has, for each instruction, its operands in order, and the function that it calls.
var groupForms = map[string]struct {
	operands []string
	code     string
}{
	"mbarrier.init.shared::cta.b64":             {[]string{"address", "b32"}, "initBarrier(shared, %s, %s, LINE)"},
	"mbarrier.arrive.expect_tx.shared::cta.b64": {[]string{"_", "address", "b32"}, "arriveExpecting(shared, %s, %s, LINE)"},
	"mbarrier.arrive.shared::cta.b64":           {[]string{"_", "address"}, "arriveExpecting(shared, %s, 0, LINE)"},
	"mbarrier.try_wait.parity.shared::cta.b64":  {[]string{"pred", "address", "b32"}, "tryWait(shared, %s, %s, LINE)"},
	"fence.proxy.async.shared::cta":             {nil, "pollen::fencePhases()"},
	"wgmma.fence.sync.aligned":                  {nil, "pollen::fenceProducts()"},
	"wgmma.commit_group.sync.aligned":           {nil, "pollen::commitProducts()"},
	"wgmma.wait_group.sync.aligned":             {[]string{"constant"}, "pollen::waitProducts(%s)"},
	"setmaxnreg.inc.sync.aligned.u32":           {[]string{"constant"}, "(void)%s"},
	"setmaxnreg.dec.sync.aligned.u32":           {[]string{"constant"}, "(void)%s"},
	"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes": {
		[]string{"address", "address", "b32", "address"}, "copyInBulk(shared, %s, %s, %s, %s, LINE)",
	},
}

// asyncProduct matches the only supported products, m64nNk16 of bfloat16 with sums in float, which
// a whole warpgroup of 128 threads computes.
var asyncProduct = regexp.MustCompile(`^wgmma\.mma_async\.sync\.aligned\.m64n(\d+)k16\.f32\.bf16\.bf16$`)

// multiplyAsync translates wgmma.mma_async {d}, a, b, scale-d, 1, 1, 0, 0, with matrix descriptors
// of K-major matrices that are not negated, and {d}, {a}, b, scale-d, 1, 1, 1, where a is in
// registers and b is MN-major.
func (e *entry) multiplyAsync(columns int, operands []string) (string, error) {
	words := len(operands) > 1 && strings.HasPrefix(operands[1], "{")
	if words && (len(operands) != 7 || strings.Join(operands[4:], " ") != "1 1 1" || len(list(operands[1])) != 4) {
		return "", errors.New("a product of registers must be with an MN-major matrix, not negated")
	}
	if !words && (len(operands) != 8 || strings.Join(operands[4:], " ") != "1 1 0 0") {
		return "", errors.New("a product must be of two K-major matrices, not negated")
	}
	d := list(operands[0])
	if columns%8 != 0 || columns < 8 || columns > 256 || len(d) != columns/2 {
		return "", errors.Errorf("%d registers for %d columns", len(d), columns)
	}
	var places []string
	for i, register := range d {
		of, code, err := e.register(register)
		if err != nil {
			return "", err
		}
		if of != "f32" {
			return "", errors.Errorf("%s, of type %s, cannot be a sum", register, of)
		}
		if slices.Contains(d[:i], register) {
			return "", errors.Errorf("%s is used for two sums", register)
		}
		places = append(places, "&"+code)
	}
	var values []any
	function := "multiplyAsync"
	if words {
		function = "multiplyWords"
		var from []string
		for _, register := range list(operands[1]) {
			of, code, err := e.register(register)
			if err != nil {
				return "", err
			}
			if of != "b32" {
				return "", errors.Errorf("%s, of type %s, is not a word of a matrix", register, of)
			}
			from = append(from, "&"+code)
		}
		values = append(values, "{"+strings.Join(from, ", ")+"}")
	}
	for i, kind := range []string{"b64", "b64", "pred"} {
		if words && i == 0 {
			continue
		}
		value, err := e.read(operands[i+1], kind)
		if err != nil {
			return "", err
		}
		values = append(values, value)
	}
	return fmt.Sprintf("{ F32* const d[%d] = {%s}; %s<%d>(d, %s, %s, %s, shared, %d); }",
		append(append([]any{columns / 2, strings.Join(places, ", "), function, columns}, values...), e.line)...), nil
}
