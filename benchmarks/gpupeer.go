package main

import (
	"fmt"
	"time"

	"github.com/pkg/errors"
)

// service is a peer's process that does one piece of work after another: starting it takes longer
// than most of them.
type service struct {
	name, program, mode string
	works               []string // kinds of work whose modes differ in a framework; one mode has the rest
	turn                int      // turn in which it trains: later ones take longer to prepare
	peer                *peer
	gone                bool
}

// turns is the number of turns.
const turns = 5

// gpuServices are the peers on a GPU, named after their modes.
func gpuServices() []*service {
	return []*service{
		{name: "torch-graph", program: torchProgram, mode: "graph", works: []string{"train", "update", "copy", "convolution"}},
		{name: "jax", program: jaxProgram, mode: "jit", works: []string{"train", "update"}, turn: 1},
		{name: "torch-compile", program: torchProgram, mode: "compile", works: []string{"train", "update"}, turn: 2},
		{name: "torch", program: torchProgram, mode: "eager", works: []string{"train", "update"}, turn: 3},
		{name: "torch-tune", program: torchProgram, mode: "tune", works: []string{"train"}, turn: 4},
	}
}

// begin sends the peer work, with a time limit for each answer, and makes the first step, in which
// most failures occur.
func (s *service) begin(o options, r peerRequest, limit time.Duration) (*side, error) {
	if s.peer == nil {
		p, err := startPeer(o, s.program)
		if err != nil {
			return nil, err
		}
		s.peer = p
	}
	r.Mode, s.peer.limit, s.peer.failed = s.mode, limit, nil
	r.Patience = limit.Seconds()
	s.peer.stderr.clear()
	_, err := s.peer.ask(r)
	if err == nil {
		_, err = s.peer.run(1)
	}
	return &side{name: s.name, does: persistent{s.peer}, limit: maxGPUSteps}, err
}

// invite is begin without a time limit. A peer that cannot do the work is reported; one that is not
// installed, only once.
func (s *service) invite(o options, r peerRequest) *side {
	if s.gone {
		return nil
	}
	side, err := s.begin(o, r, 0)
	if err == nil {
		return side
	}
	fmt.Printf("  %s is left out here: %v\n", s.name, err)
	_, missing := errors.Cause(err).(absent)
	s.gone = missing
	if _, gone := errors.Cause(err).(ended); gone || missing {
		s.close() // the next work starts a new process
	}
	return nil
}

func (s *service) close() {
	if s.peer != nil {
		s.peer.close()
		s.peer = nil
	}
}

// persistent is a contestant whose process stays alive.
type persistent struct{ *peer }

func (persistent) close() error { return nil }

// maxGPUSteps is the maximum number of steps of a round on a GPU, where a step takes microseconds.
const maxGPUSteps = 4096
