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
	works               []string // in which a framework's modes differ; one of them has the rest
	turn                int      // in which it trains, the later the longer it takes to prepare
	peer                *peer
	gone                bool
}

// turns is how many turns there are.
const turns = 3

// gpuServices are the peers on a GPU, named after their modes.
func gpuServices() []*service {
	return []*service{
		{name: "torch", program: torchProgram, mode: "eager", works: []string{"train", "update"}},
		{name: "torch-graph", program: torchProgram, mode: "graph", works: []string{"train", "update", "copy", "convolution"}},
		{name: "torch-compile", program: torchProgram, mode: "compile", works: []string{"train", "update"}, turn: 2},
		{name: "jax", program: jaxProgram, mode: "jit", works: []string{"train", "update"}, turn: 1},
	}
}

// begin gives the peer work, with a time limit. An absent peer is reported once; what it cannot do
// is left out, with its reason.
func (s *service) begin(o options, r peerRequest, limit time.Duration) (*side, bool) {
	if s.gone {
		return nil, false
	}
	if s.peer == nil {
		p, err := startPeer(o, s.program)
		if err != nil {
			s.leave(err)
			return nil, false
		}
		s.peer = p
	}
	r.Mode, s.peer.limit = s.mode, limit
	_, err := s.peer.ask(r)
	if err == nil {
		_, err = s.peer.run(1) // what fails does so at the first step
	}
	if err != nil {
		if _, missing := errors.Cause(err).(absent); missing {
			s.leave(err)
		} else {
			fmt.Printf("  %s is left out here: %v\n", s.name, err)
			if _, gone := errors.Cause(err).(ended); gone {
				s.close() // the next work begins with a new process
			}
		}
		return nil, false
	}
	return &side{name: s.name, does: attending{s.peer}, most: mostGPUSteps}, true
}

// leave gives the peer up.
func (s *service) leave(why error) {
	fmt.Printf("  %s is left out: %v\n", s.name, why)
	s.gone = true
	s.close()
}

func (s *service) close() {
	if s.peer != nil {
		s.peer.close()
		s.peer = nil
	}
}

// attending is a contestant whose process goes on.
type attending struct{ *peer }

func (attending) close() error { return nil }
