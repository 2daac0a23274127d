package optest

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/tensor"
)

// guard is a device that runs a workload on another one, launch by launch, and reports launches
// that change memory other than their written arguments. It moves each buffer to separate memory
// between sentinels, and fills buffers that the step must write with NaN.
type guard struct{ tensor.Device }

// margin is the minimum number of sentinel bytes on each side of a buffer: more than a vector
// register, or a row of a tile.
const margin = 512

const (
	sentinel = 0xA5
	poison   = 0xFF // all bits set is NaN in every float type
)

// arenaNumber is the number of arenas that the guard uses. It moves scratch buffers to the chain's
// arena, which can be read and written at any time.
const arenaNumber = 2

// guardRunner is a guarded workload.
type guardRunner struct {
	tensor.Runner
	launches []tensor.Launch
	places   map[*tensor.Buffer]*tensor.Buffer
	order    [arenaNumber][]*tensor.Buffer // moved buffers, by offset
	whole    [arenaNumber]*tensor.Buffer   // each arena, as bytes
	first    [arenaNumber]int              // where the moved buffers' part of an arena begins
	filled   map[*tensor.Buffer]bool       // moved buffers that the step writes before reading
	stride   int                           // guarded launches for each of the original ones
	chains   int
	now      [arenaNumber][]byte // the arenas as they should be
	seen     [arenaNumber][]byte // the arenas as they are
}

// Load implements tensor.Device.
func (g guard) Load(s tensor.Workload) (tensor.Runner, error) {
	r := &guardRunner{
		places: map[*tensor.Buffer]*tensor.Buffer{}, filled: map[*tensor.Buffer]bool{}, stride: 1, chains: s.Chains,
	}
	bytes := s.Bytes
	for arena := range arenaNumber {
		r.first[arena] = tensor.Align(bytes[arena])
		bytes[arena] = r.first[arena] + tensor.Align(margin)
	}
	for i := range s.Launches {
		r.launches = append(r.launches, r.move(s.Launches[i], &bytes))
	}
	bytes[tensor.Scratch] = tensor.Alignment
	for arena := range arenaNumber {
		r.whole[arena] = tensor.NewBuffer("arena", tensor.Arena(arena), tensor.Uint8, bytes[arena])
		r.whole[arena].Offset = 0
		r.now[arena], r.seen[arena] = make([]byte, bytes[arena]), make([]byte, bytes[arena])
	}
	schedule := tensor.Workload{Launches: r.launches, Bytes: bytes, Chains: s.Chains, Keeps: s.Keeps}
	if _, ok := g.Device.(*tensor.Host); ok {
		schedule.Launches = withPoison(r.launches)
		r.stride = 2
	}
	var err error
	r.Runner, err = g.Device.Load(schedule)
	return r, err
}

// move returns the launch with its buffers moved.
func (r *guardRunner) move(launch tensor.Launch, bytes *[3]int) tensor.Launch {
	for _, a := range launch.Arguments {
		if a.Buffer == nil || r.places[a.Buffer] != nil {
			continue
		}
		moved := new(tensor.Buffer)
		*moved = *a.Buffer
		if moved.Arena == tensor.Scratch {
			moved.Arena = tensor.Chain
		}
		moved.Offset = bytes[moved.Arena]
		bytes[moved.Arena] = tensor.Align(moved.Offset + moved.Bytes() + margin)
		r.places[a.Buffer] = moved
		r.order[moved.Arena] = append(r.order[moved.Arena], moved)
		r.filled[moved] = a.Access == tensor.Write && !readsToo(launch.Arguments, a.Buffer)
	}
	return launch.WithBuffers(func(b *tensor.Buffer) *tensor.Buffer { return r.places[b] })
}

func readsToo(arguments []tensor.Argument, b *tensor.Buffer) bool {
	return slices.ContainsFunc(arguments, func(a tensor.Argument) bool { return a.Buffer == b && a.Access&tensor.Read != 0 })
}

// withPoison puts, before each launch, one that fills the host's workspace and private memory with
// NaN.
func withPoison(launches []tensor.Launch) []tensor.Launch {
	spoil := tensor.HostKernel{}
	for i := range launches {
		spoil.Workspace = max(spoil.Workspace, launches[i].Host.Workspace)
		spoil.Private = max(spoil.Private, launches[i].Host.Private)
	}
	spoil.Phases = []tensor.Phase{
		{Tiles: 1, Run: func(a *tensor.Args, _ int) { fill(tensor.Workspace[uint8](a), poison) }},
		{Tiles: 8, Run: func(a *tensor.Args, _ int) { fill(tensor.Private[uint8](a), poison) }}, // some for each worker
	}
	var all []tensor.Launch
	for _, launch := range launches {
		all = append(all, tensor.Launch{Kernel: "poison", Host: spoil}, launch)
	}
	return all
}

func fill(memory []byte, with byte) {
	for i := range memory {
		memory[i] = with
	}
}

// place returns the moved buffer that replaces b, a buffer of the original workload.
func (r *guardRunner) place(b *tensor.Buffer) *tensor.Buffer {
	if moved := r.places[b]; moved != nil {
		return moved
	}
	return b // no launch uses it, so that it was not moved
}

// Read implements tensor.Runner.
func (r *guardRunner) Read(b *tensor.Buffer, chain, first int, dst []byte) error {
	return r.Runner.Read(r.place(b), chain, first, dst)
}

// Write implements tensor.Runner.
func (r *guardRunner) Write(b *tensor.Buffer, chain, first int, src []byte) error {
	return r.Runner.Write(r.place(b), chain, first, src)
}

// Run implements tensor.Runner.
func (r *guardRunner) Run(steps int) error {
	for chain := range r.chains {
		for range steps {
			if err := r.prepare(chain); err != nil {
				return err
			}
			err := r.Runner.Step(chain, func(i int) error { return r.check(chain, i) })
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// prepare writes the sentinels, and NaN to buffers that the step must write before it reads them.
func (r *guardRunner) prepare(chain int) error {
	for arena := range arenaNumber {
		now := r.now[arena]
		if err := r.Runner.Read(r.whole[arena], chain, 0, now); err != nil {
			return err
		}
		end := r.first[arena]
		for _, b := range r.order[arena] {
			fill(now[end:b.Offset], sentinel)
			end = b.Offset + b.Bytes()
			if r.filled[b] {
				fill(now[b.Offset:end], poison)
			}
		}
		fill(now[end:], sentinel)
		if err := r.Runner.Write(r.whole[arena], chain, 0, now); err != nil {
			return err
		}
	}
	return nil
}

// check compares the memory after a launch with that before, except for the launch's written
// arguments.
func (r *guardRunner) check(chain, i int) error {
	if i%r.stride != r.stride-1 {
		return nil
	}
	launch := &r.launches[i/r.stride]
	for arena := range arenaNumber {
		now, seen := r.now[arena], r.seen[arena]
		if err := r.Runner.Read(r.whole[arena], chain, 0, seen); err != nil {
			return err
		}
		for _, a := range launch.Arguments {
			if b := a.Buffer; b != nil && int(b.Arena) == arena && a.Access&tensor.Write != 0 {
				copy(now[b.Offset:b.Offset+b.Bytes()], seen[b.Offset:])
			}
		}
		if bytes.Equal(now, seen) {
			continue
		}
		at := 0
		for now[at] == seen[at] {
			at++
		}
		return errors.Errorf("optest: %s (%s) changes memory that is none of its written arguments: %s", launch.Kernel, launch.Label, r.where(arena, at))
	}
	return nil
}

// where describes a byte of an arena.
func (r *guardRunner) where(arena, at int) string {
	text := errors.Errorf("byte %d of the %v arena", at, tensor.Arena(arena)).Error()
	for _, b := range r.order[arena] {
		switch end := b.Offset + b.Bytes(); {
		case at >= b.Offset && at < end:
			return fmt.Sprintf("byte %d of %v", at-b.Offset, b)
		case at >= b.Offset-margin && at < b.Offset:
			return fmt.Sprintf("%d bytes before %v", b.Offset-at, b)
		case at >= end && at < end+margin:
			text = fmt.Sprintf("%d bytes behind the last of %v", at-end+1, b)
		}
	}
	return text
}
