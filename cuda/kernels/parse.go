package kernels

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"
)

var (
	versionLine   = regexp.MustCompile(`(?m)^\.version (\d+)\.(\d)$`)
	targetLine    = regexp.MustCompile(`(?m)^\.target sm_(\d+)(a?)$`)
	parameterLine = regexp.MustCompile(`^\.param (?:\.align 8 \.b8 \w+\[(\d+)\]|\.([fu]\d+) \w+),?$`)
	threadsLine   = regexp.MustCompile(`^\.maxntid (\d+), (\d+), (\d+)$`)
)

// entryWord begins an entry.
const entryWord = "\n.visible .entry "

// parse reads a file's version, target and entries, without compiling it.
func parse(name, text string) (File, error) {
	f := File{Name: name, Text: text}
	head := text[:min(len(text), 4096)]
	version, target := versionLine.FindStringSubmatch(head), targetLine.FindStringSubmatch(head)
	if version == nil || target == nil {
		return f, errors.Errorf("kernels: %s: no .version or no .target: it is no PTX", name)
	}
	f.Version = 10*number(version[1]) + number(version[2])
	f.Capability, f.Exact = number(target[1]), target[2] != ""
	parts := strings.Split(text, entryWord)
	f.Head = parts[0]
	for _, part := range parts[1:] {
		head, _, found := strings.Cut(part, "\n{\n")
		if !found || !strings.HasSuffix(part, "\n}") && !strings.HasSuffix(part, "\n}\n") {
			return f, errors.Errorf("kernels: %s: an entry without an end", name)
		}
		entry, err := parseEntry(head)
		if err != nil {
			return f, errors.WithMessage(err, "kernels: "+name)
		}
		entry.Body = entryWord + part
		f.Entries = append(f.Entries, entry)
	}
	slices.SortFunc(f.Entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	if len(f.Entries) == 0 {
		return f, errors.Errorf("kernels: %s: no entries", name)
	}
	return f, nil
}

// parseEntry reads an entry's name, its parameters and its directives, up to the body.
func parseEntry(head string) (Entry, error) {
	lines := strings.Split(head, "\n")
	e := Entry{Name: strings.TrimSuffix(strings.TrimSuffix(lines[0], "()"), "(")}
	for _, line := range lines[1:] {
		if parameter := parameterLine.FindStringSubmatch(line); parameter != nil {
			if bytes := number(parameter[1]); bytes > 16 {
				e.Row = (bytes - rowsBegin) / MaxRows
				if e.Parameters != nil || e.Row <= 0 || bytes != rowsBegin+MaxRows*e.Row || e.Row%8 != 0 {
					return e, errors.Errorf("entry %s: %q was not expected: it is no %d rows, or not the only parameter", e.Name, line, MaxRows)
				}
				continue
			}
			p, ok := map[string]Parameter{"": Buffer, "u32": Integer, "f32": Float32, "f64": Float64}[parameter[2]]
			if !ok || e.Row > 0 {
				return e, errors.Errorf("entry %s: no launch has arguments of type %s", e.Name, parameter[2])
			}
			e.Parameters = append(e.Parameters, p)
		} else if threads := threadsLine.FindStringSubmatch(line); threads != nil {
			e.Threads = number(threads[1]) * number(threads[2]) * number(threads[3])
		} else if line != ")" && !strings.HasPrefix(line, ".minnctapersm ") {
			return e, errors.Errorf("entry %s: %q was not expected", e.Name, line)
		}
	}
	if e.Threads == 0 {
		return e, errors.Errorf("entry %s: no .maxntid: it was not written with KERNEL", e.Name)
	}
	return e, nil
}

func number(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}
