package ptx

import (
	"fmt"
	"hash/fnv"
	"regexp"
	"strings"

	"github.com/pkg/errors"
)

// Unit is the C++ of some of a file's entries, which one run of the compiler compiles.
type Unit struct {
	Name string
	Text []byte
}

// unitBytes is the minimum amount of PTX in a unit, except a file's last one; the compiler takes
// some seconds for that.
const unitBytes = 150 << 10

// Translate returns C++ for a file of PTX, as units to be linked together. others are equivalent
// texts, which the emulated driver then accepts, too.
//
// It reads line by line, which suffices for clang's output: one instruction, label or directive
// per line.
func Translate(name, text string, others ...string) ([]Unit, error) {
	m := &module{lines: strings.Split(text, "\n"), arrays: map[string]array{}}
	var units []Unit
	var made strings.Builder
	begin := func() {
		made.Reset()
		for _, header := range []string{"ptx/memory.h", "ptx/instructions.h", "ptx/warp.h", "ptx/group.h", "parameter.h"} {
			fmt.Fprintf(&made, "#include %q\n", header)
		}
		made.WriteString("using namespace pollen::ptx;\n")
	}
	end := func() {
		if len(units) == 0 {
			made.WriteString("static const bool known =")
			for _, known := range append([]string{text}, others...) {
				for _, part := range strings.Split(known, "\n.visible .entry ") {
					digest := fnv.New64a()
					digest.Write([]byte(part))
					fmt.Fprintf(&made, " pollen::addPTX(0x%xull) &&", digest.Sum64())
				}
			}
			made.WriteString(" true;\n")
		}
		units = append(units, Unit{fmt.Sprintf("%s-%d", strings.TrimSuffix(name, ".ptx"), len(units)), []byte(made.String())})
	}
	begin()
	size, entries := 0, 0
	for {
		e, err := m.next()
		if err != nil {
			return nil, errors.Errorf("ptx: %s:%d: %v", name, m.line, err)
		}
		if e == nil {
			break
		}
		if size >= unitBytes {
			end()
			begin()
			size = 0
		}
		from := m.line
		if err := e.translate(&made, m); err != nil {
			return nil, errors.Errorf("ptx: %s:%d: entry %s: %v", name, m.line, e.name, err)
		}
		for _, line := range m.lines[from:m.line] {
			size += len(line)
		}
		entries++
	}
	if entries == 0 {
		return nil, errors.Errorf("ptx: %s: no entries", name)
	}
	end()
	return units, nil
}

// module is a file that is being read.
type module struct {
	lines  []string
	line   int // number of the last line read
	arrays map[string]array
}

// array is a named array of shared memory. The launch sets the size of the dynamic one.
type array struct {
	name         string
	align, bytes int
	dynamic      bool
}

func (m *module) read() (string, bool) {
	if m.line >= len(m.lines) {
		return "", false
	}
	m.line++
	return m.lines[m.line-1], true
}

var (
	sharedLine    = regexp.MustCompile(`^\.(?:weak|visible|extern) \.shared \.align (\d+) \.b8 ([\w$]+)\[(\d*)\];$`)
	localLine     = regexp.MustCompile(`^\.local \.align (\d+) \.b8 ([\w$]+)\[(\d+)\];$`)
	parameterLine = regexp.MustCompile(`^\.param (?:\.align \d+ \.b8 (\w+)\[(\d+)\]|\.([a-z])(\d+) (\w+)),?$`)
	registersLine = regexp.MustCompile(`^\.reg \.(\w+) (%\w*[A-Za-z_])<(\d+)>;$`)
	registerLine  = regexp.MustCompile(`^\.reg \.(\w+) (%?[A-Za-z_]\w*);$`)
	threadsLine   = regexp.MustCompile(`^\.maxntid (\d+), 1, 1$`)
)

// next reads up to an entry's body. At the end of the file it returns nil.
func (m *module) next() (*entry, error) {
	for {
		line, more := m.read()
		if !more {
			return nil, nil
		}
		if found := sharedLine.FindStringSubmatch(line); found != nil {
			m.arrays[found[2]] = array{found[2], number(found[1]), number(found[3]), found[3] == ""}
			continue
		}
		if name, found := strings.CutPrefix(line, ".visible .entry "); found {
			return m.entry(strings.TrimSuffix(strings.TrimSuffix(name, "()"), "("))
		}
		word, _, _ := strings.Cut(line, " ")
		switch word {
		case "", "//", ".version", ".target":
		case ".address_size":
			if line != ".address_size 64" {
				return nil, errors.Errorf("%q: addresses have 64 bits", line)
			}
		default:
			return nil, errors.Errorf("%q is not supported", line)
		}
	}
}

// entry reads an entry's parameters and directives.
func (m *module) entry(name string) (*entry, error) {
	e := &entry{name: name, registers: map[string]registers{}, symbols: map[string]string{}, declared: map[string]bool{}}
	for {
		line, more := m.read()
		if !more {
			return nil, errors.Errorf("entry %s does not end", name)
		}
		if found := parameterLine.FindStringSubmatch(line); found != nil {
			p := parameter{found[1], number(found[2]), 'b'}
			if found[1] == "" {
				p = parameter{found[5], number(found[4]) / 8, 'i'}
				if found[3] == "f" {
					p.kind = 'f'
				}
			}
			e.symbols[p.name] = fmt.Sprintf("parameterAddress(%d)", len(e.parameters))
			e.parameters = append(e.parameters, p)
			continue
		}
		if found := threadsLine.FindStringSubmatch(line); found != nil {
			e.threads = number(found[1])
			continue
		}
		switch {
		case line == "{":
			if e.threads == 0 {
				return nil, errors.Errorf("entry %s must have a one-dimensional .maxntid", name)
			}
			return e, nil
		case line == ")", strings.HasPrefix(line, ".minnctapersm "):
		default:
			return nil, errors.Errorf("entry %s: %q is not supported", name, line)
		}
	}
}
