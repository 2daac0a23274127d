package kernels

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// DependentCapability is the first compute capability on which a launch may begin before the one
// that it follows has ended, and DependentVersion the first PTX that says so, both 10 major +
// minor.
const (
	DependentCapability = 90
	DependentVersion    = 78
)

// Dependent is PTX for launches that may begin while the launch that they follow still runs: an
// entry begins with what its registers and parameters give, then waits for that launch's end and
// its writes, and lets the next launch begin. What it reads from memory is no constant during the
// kernel then, so loads that take it for one become plain loads.
func Dependent(text string) string {
	var out strings.Builder
	begins, inside := false, false // the lines of an entry's body, up to the wait
	for line := range strings.Lines(text) {
		word := strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(word, ".version "):
			line = atLeast(line, versionLine, DependentVersion, ".version %d.%d\n")
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

// atLeast is a directive's line with a number of two digits that is not lower than least.
func atLeast(line string, form *regexp.Regexp, least int, format string) string {
	found := form.FindStringSubmatch(line)
	if found == nil || number(strings.TrimSuffix(found[1]+found[2], "a")) >= least {
		return line
	}
	digits := strconv.Itoa(least)
	return strings.Replace(strings.Replace(format, "%d", digits[:1], 1), "%d", digits[1:], 1)
}

// early are instructions of registers and parameters alone.
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
