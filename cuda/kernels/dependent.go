package kernels

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// DependentCapability is the first compute capability with programmatic dependent launch, and
// dependentVersion the first version of PTX with its instructions, both as 10 major + minor.
const (
	DependentCapability = 90
	dependentVersion    = 78
)

// Dependent returns PTX for programmatic dependent launch, where a kernel may begin while the
// kernel before it still runs. Each entry executes the instructions that need only registers and
// parameters, then waits until the kernel before it has ended and its writes are visible
// (griddepcontrol.wait), and then lets the next kernel begin (griddepcontrol.launch_dependents).
// Memory is no longer constant during the kernel, so ld.global.nc loads become plain ones.
func Dependent(text string) string {
	var out strings.Builder
	begins, inside := false, false // inside: in an entry's body, before the wait
	for line := range strings.Lines(text) {
		word := strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(word, ".version "):
			line = atLeast(line, versionLine, dependentVersion, ".version %d.%d\n")
		case strings.HasPrefix(word, ".target "):
			line = atLeast(line, targetLine, DependentCapability, ".target sm_%d%d\n")
		case strings.HasPrefix(word, ".visible .entry "):
			begins = true
		case begins && word == "{":
			begins, inside = false, true
		case inside && !startsEarly(word):
			out.WriteString("griddepcontrol.wait;\ngriddepcontrol.launch_dependents;\n")
			inside = false
		}
		out.WriteString(strings.ReplaceAll(line, "ld.global.nc.", "ld.global."))
	}
	return out.String()
}

// atLeast returns a directive's line with its two-digit number raised to least if it is lower.
func atLeast(line string, form *regexp.Regexp, least int, format string) string {
	found := form.FindStringSubmatch(line)
	if found == nil || number(strings.TrimSuffix(found[1]+found[2], "a")) >= least {
		return line
	}
	digits := strconv.Itoa(least)
	return strings.Replace(strings.Replace(format, "%d", digits[:1], 1), "%d", digits[1:], 1)
}

// early lists the instructions that use only registers and parameters.
var early = strings.Fields("add and bfe bfi clz cvt cvta fma mad max min mov mul neg not or popc rem div selp setp shf shl shr sub xor ld.param")

// startsEarly reports whether a line of an entry's body may come before the wait.
func startsEarly(line string) bool {
	if line == "" || strings.HasPrefix(line, ".") {
		return true
	}
	opcode, _, _ := strings.Cut(line, " ")
	stem, rest, _ := strings.Cut(opcode, ".")
	if stem == "ld" {
		space, _, _ := strings.Cut(rest, ".")
		stem += "." + space
	}
	return slices.Contains(early, stem)
}
