package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
)

// cappedFile is a file that keeps only the first bytes written to it.
type cappedFile struct {
	mu   sync.Mutex
	file *os.File
	left int
}

// Write implements io.Writer. It never fails: a log must not end the call that it describes.
func (f *cappedFile) Write(text []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := min(len(text), f.left)
	f.left -= n
	f.file.Write(text[:n])
	return len(text), nil
}

// outputOf parses a check's output: it writes lines with the check's name to the log, and counts
// the tests that passed, were skipped and failed.
type outputOf struct {
	log     io.Writer
	name    string
	left    int // bytes that may still be logged
	partial []byte

	passed, skipped int
	failures        []string
	message         map[string]string // the first line of a test's message
	current         string            // the test whose output this is
	begun           []string          // tests that have not ended
	lost            bool
	last            []string // the last lines
}

// lastLines is the number of a failed check's last lines that are recorded.
const lastLines = 12

// Write implements io.Writer.
func (o *outputOf) Write(text []byte) (int, error) {
	o.partial = append(o.partial, text...)
	for {
		line, rest, found := bytes.Cut(o.partial, []byte{'\n'})
		if !found {
			return len(text), nil
		}
		o.line(string(line))
		o.partial = rest
	}
}

// flush processes a last line that has no newline.
func (o *outputOf) flush() {
	if len(o.partial) > 0 {
		o.line(string(o.partial))
		o.partial = nil
	}
}

func (o *outputOf) line(line string) {
	if n := len(o.name) + len(line) + 3; n <= o.left {
		o.left -= n
		fmt.Fprintf(o.log, "%s| %s\n", o.name, line)
	}
	if o.last = append(o.last, line[:min(len(line), 400)]); len(o.last) > lastLines {
		o.last = o.last[1:]
	}
	o.lost = o.lost || strings.Contains(line, "is lost since an earlier error")
	fields := strings.Fields(line)
	switch {
	case len(fields) >= 3 && fields[0] == "===":
		o.current = fields[2]
		if fields[1] == "RUN" {
			o.begun = append(o.begun, o.current)
		}
	case len(fields) >= 3 && fields[0] == "---":
		test := fields[2]
		o.begun = slices.DeleteFunc(o.begun, func(name string) bool { return name == test })
		switch fields[1] {
		case "PASS:":
			o.passed++
		case "SKIP:":
			o.skipped++
		case "FAIL:":
			// A test that failed only because its subtest did has no message.
			if message := o.message[test]; message != "" || !o.partFailed(test) {
				o.failures = append(o.failures, strings.TrimSuffix(test+": "+message, ": "))
			}
		}
	case strings.Contains(line, "_test.go:") && o.current != "":
		if o.message == nil {
			o.message = map[string]string{}
		}
		if o.message[o.current] == "" {
			text := strings.TrimSpace(line)
			o.message[o.current] = text[:min(len(text), 400)]
		}
	}
}

func (o *outputOf) partFailed(test string) bool {
	return slices.ContainsFunc(o.failures, func(f string) bool { return strings.HasPrefix(f, test+"/") })
}

// running returns the innermost test that has not ended, or "".
func (o *outputOf) running() string {
	if len(o.begun) == 0 {
		return ""
	}
	return o.begun[len(o.begun)-1]
}
