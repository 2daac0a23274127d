package main

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pkg/errors"
)

// The peers' programs: what they share, and one file for each framework. They read requests and
// answer, a line of JSON each.
//
//go:embed peers/serve.py
var serveProgram string

//go:embed peers/torch_peer.py
var torchProgram string

//go:embed peers/jax_peer.py
var jaxProgram string

//go:embed peers/pretrained_peer.py
var pretrainedProgram string

//go:embed peers/heads_peer.py
var headsProgram string

// peers are the other frameworks of a training step, by name.
var peers = []struct {
	name string
	open func(o options, t training) (contestant, error)
}{
	{"gorgonia", func(_ options, t training) (contestant, error) { return newTapeMachine(t) }},
	{"gorgonia-drop-in", func(o options, t training) (contestant, error) { return newDropIn(t, o.threads) }},
	{"torch", func(o options, t training) (contestant, error) { return openPeer(o, torchProgram, "eager", t) }},
	{"torch-channels-last", func(o options, t training) (contestant, error) { return openPeer(o, torchProgram, "channels-last", t) }},
	{"torch-compile", func(o options, t training) (contestant, error) { return openPeer(o, torchProgram, "compile", t) }},
	{"jax", func(o options, t training) (contestant, error) { return openPeer(o, jaxProgram, "jit", t) }},
}

// invite adds the named peers that can do the work. A missing one is reported only once.
func invite(sides []*side, o *options, t training, names []string, reported map[string]bool) ([]*side, error) {
	for _, p := range peers {
		if !slices.Contains(names, p.name) {
			continue
		}
		other, err := p.open(*o, t)
		if why, missing := err.(absent); missing {
			if !reported[p.name] {
				fmt.Printf("  %s is left out: %v\n", p.name, why)
			}
			reported[p.name] = true
			continue
		}
		if err != nil {
			return sides, err
		}
		sides = append(sides, &side{name: p.name, does: other})
	}
	return sides, nil
}

// absent is the error of a side that cannot take part. The comparison continues without it.
type absent struct{ error }

// ended is the error of a peer whose process has ended.
type ended struct{ error }

// peer is a process of another framework.
type peer struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	limit   time.Duration // time limit of an answer, after which the process is killed; 0 means none
	stderr  *tail
	failed  error // of the last run
}

type peerRequest struct {
	Work    string  `json:"work,omitempty"`   // train, predict, update, copy, convolution or product
	Device  string  `json:"device,omitempty"` // cpu or cuda
	Network string  `json:"network,omitempty"`
	Batch   int     `json:"batch,omitempty"`
	Sampler string  `json:"sampler,omitempty"` // sgd, sgld, psgld
	Mode    string  `json:"mode,omitempty"`
	Threads int     `json:"threads,omitempty"`
	Rate    float64 `json:"rate,omitempty"`
	Prior   float64 `json:"prior,omitempty"` // standard deviation
	Steps   int     `json:"steps,omitempty"`

	File  string `json:"file,omitempty"`  // an ONNX file, to write or to read
	Clock string `json:"clock,omitempty"` // wall or processor

	Memory       bool `json:"memory,omitempty"`       // bytes that the work takes
	Displacement bool `json:"displacement,omitempty"` // parameters' mean square displacement

	// For the benchmarks on a GPU, where a peer answers many requests for work.
	Chains     int    `json:"chains,omitempty"`
	Precision  string `json:"precision,omitempty"`
	Parameters int    `json:"parameters,omitempty"`
	// Patience is the time limit in seconds for preparing the work.
	Patience float64 `json:"patience,omitempty"`

	Direction  string `json:"direction,omitempty"`  // of a convolution: forward, input or filter
	Sizes      []int  `json:"sizes,omitempty"`      // of a convolution: filters, channels, and the sides of images, filters and borders; of a product: M, N, K
	Transposed bool   `json:"transposed,omitempty"` // whether a product's second matrix is
}

type peerAnswer struct {
	Seconds      float64 `json:"seconds"`
	Displacement float64 `json:"displacement"`
	Memory       int     `json:"memory"`
	Absent       string  `json:"absent"`
	Error        string  `json:"error"`
}

func openPeer(o options, program, mode string, t training) (contestant, error) {
	work := "train"
	if t.sampler == "predict" {
		work = "predict"
	}
	return preparePeer(o, program, peerRequest{
		Work: work, Device: "cpu", Network: t.network, Batch: t.batch, Sampler: t.sampler, Mode: mode, Threads: o.threads, Rate: rate, Prior: priorStd,
	})
}

// preparePeer starts a peer's process and has it prepare some work.
func preparePeer(o options, program string, r peerRequest) (contestant, error) {
	p, err := startPeer(o, program)
	if err != nil {
		return nil, err
	}
	if _, err := p.ask(r); err != nil {
		return nil, closeAfter(p, err)
	}
	return p, nil
}

// startPeer starts a peer's process.
func startPeer(o options, program string) (*peer, error) {
	command := exec.Command(o.python, "-c", serveProgram+program)
	stderr := new(tail)
	command.Stderr = io.MultiWriter(os.Stderr, stderr)
	command.WaitDelay = closing // its children may still hold stderr
	restable(command)
	in, err := command.StdinPipe()
	if err != nil {
		return nil, errors.Wrap(err, "benchmarks: peer")
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, errors.Wrap(err, "benchmarks: peer")
	}
	if err := command.Start(); err != nil {
		return nil, absent{errors.Wrap(err, "benchmarks: peer")}
	}
	return &peer{command: command, in: in, out: bufio.NewReader(out), stderr: stderr}, nil
}

// closeAfter ends the process and returns the error that caused this.
func closeAfter(p *peer, err error) error {
	if closing := p.close(); closing != nil {
		fmt.Fprintln(os.Stderr, closing)
	}
	return err
}

// ask sends a request and waits for its answer. Before and after, the process is stopped.
func (p *peer) ask(r peerRequest) (a peerAnswer, err error) {
	if err := p.wake(); err != nil {
		return a, ended{err}
	}
	if a, err = p.answer(r); err != nil {
		return a, err
	}
	return a, p.rest()
}

func (p *peer) answer(r peerRequest) (peerAnswer, error) {
	var a peerAnswer
	line, err := json.Marshal(r)
	if err != nil {
		return a, errors.Wrap(err, "benchmarks: peer")
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return a, errors.Wrap(ended{err}, "benchmarks: peer")
	}
	if p.limit > 0 {
		defer time.AfterFunc(p.limit, func() { p.kill() }).Stop()
	}
	begin := time.Now()
	answer, err := p.out.ReadBytes('\n')
	if err != nil && p.limit > 0 && time.Since(begin) >= p.limit {
		return a, ended{errors.Errorf("benchmarks: the peer did not answer within %v", p.limit.Round(time.Second))}
	}
	if err != nil {
		err = ended{err}
		return a, errors.Wrap(err, "benchmarks: peer ended")
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		return a, errors.Wrapf(err, "benchmarks: peer answers %q", answer)
	}
	switch {
	case a.Absent != "":
		return a, absent{errors.New(a.Absent)}
	case a.Error != "":
		return a, errors.Errorf("benchmarks: peer: %s", a.Error)
	}
	return a, nil
}

func (p *peer) run(steps int) (float64, error) {
	a, err := p.ask(peerRequest{Steps: steps})
	p.failed = err
	return a.Seconds, err
}

// closing is the time limit for a peer's process to end.
const closing = 15 * time.Second

func (p *peer) close() error {
	p.wake() // an error means that it has ended, which Wait reports
	defer time.AfterFunc(closing, func() { p.kill() }).Stop()
	if err := p.in.Close(); err != nil {
		return errors.Wrap(err, "benchmarks: peer")
	}
	return errors.Wrap(p.command.Wait(), "benchmarks: peer")
}

// lastLines returns the last lines that the process wrote to its stderr.
func (p *peer) lastLines() []string { return p.stderr.lines() }

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// Bounds of what a tail keeps.
const (
	tailBytes = 8 << 10
	tailLines = 20
)

// Write implements io.Writer.
func (t *tail) Write(text []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, text...)
	t.text = t.text[max(0, len(t.text)-tailBytes):]
	return len(text), nil
}

func (t *tail) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = nil
}

func (t *tail) lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.TrimSpace(strings.ToValidUTF8(string(t.text), "?"))
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	return lines[max(0, len(lines)-tailLines):]
}
