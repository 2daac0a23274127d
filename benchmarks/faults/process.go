package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/letters"
)

// build builds the program, and writes its data.
func (h *harness) build() error {
	h.program = filepath.Join(h.work, "pollen")
	out, err := exec.Command("go", "build", "-o", h.program, "github.com/pollen-ml/pollen/cmd/pollen").CombinedOutput()
	if err != nil {
		return errors.Wrapf(err, "go build: %s", out)
	}
	return letters.Write(filepath.Join(h.work, "data", "notmnist"), 200, 60)
}

// process is a process of pollen.
type process struct {
	*exec.Cmd
	out, remarks bytes.Buffer
	ended        chan struct{}
}

// start starts pollen in the work directory, with additional environment variables.
func (h *harness) start(environment []string, arguments ...string) (*process, error) {
	p := &process{Cmd: exec.Command(h.program, arguments...), ended: make(chan struct{})}
	p.Dir = h.work
	p.Env = append(append(os.Environ(), datasets.EnvironmentDir+"="+filepath.Join(h.work, "data")), environment...)
	p.Stdout, p.Stderr = &p.out, &p.remarks
	if err := p.Start(); err != nil {
		return nil, errors.Wrap(err, "pollen")
	}
	go func() {
		_ = p.Wait() // the exit code reports the result
		close(p.ended)
	}()
	return p, nil
}

// end runs pollen to its end and returns its exit code, or -1 if a signal ended it. If the context
// ends, so does the process, which is an error.
func (h *harness) end(environment []string, arguments ...string) (p *process, code int, err error) {
	if p, err = h.start(environment, arguments...); err != nil {
		return nil, 0, err
	}
	select {
	case <-p.ended:
		return p, p.ProcessState.ExitCode(), nil
	case <-h.ctx.Done():
		_ = p.Process.Kill() // it may have ended
		<-p.ended
		return p, -1, errors.WithStack(h.ctx.Err())
	}
}

// must runs pollen, which must succeed.
func (h *harness) must(environment []string, arguments ...string) (*process, error) {
	p, code, err := h.end(environment, arguments...)
	if err == nil && code != 0 {
		err = errors.Errorf("pollen %s: exit code %d: %s", strings.Join(arguments, " "), code, p.remarks.String())
	}
	return p, err
}

// results returns the files of a run whose bytes do not depend on when and how it is made.
func results(dir string) (map[string][]byte, error) {
	all := map[string][]byte{}
	for _, pattern := range []string{"samples/*", "states/*", "metrics.jsonl", "diagnostics.json", "calibration.json", "checkpoint/state.safetensors"} {
		paths, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return nil, errors.Wrap(err, "results")
		}
		for _, path := range paths {
			content, err := os.ReadFile(path)
			if err != nil {
				return nil, errors.Wrap(err, "results")
			}
			name, _ := filepath.Rel(dir, path)
			all[name] = content
		}
	}
	return all, nil
}

// difference describes the first difference between two runs' results; "" if there is none.
func difference(want, got map[string][]byte) string {
	for name, content := range want {
		if other, ok := got[name]; !ok {
			return "there is no " + name
		} else if !bytes.Equal(content, other) {
			return name + " differs"
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			return name + " should not be there"
		}
	}
	return ""
}
