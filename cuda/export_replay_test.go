package cuda

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pollen-ml/pollen/cuda/emulator"
	"github.com/pollen-ml/pollen/cuda/internal/plan"
	"github.com/pollen-ml/pollen/tensor"
)

// Recorder is a host device that records how a GPU would run each launch that differs from earlier
// ones: its calls in every precision, and its buffers' contents.
type Recorder struct {
	tensor.Device
	emulator.Recording
	seen map[string]bool
	few  map[string]recorded // by the first kernel
}

// recorded is a launch among the few.
type recorded struct {
	bytes   int // of its buffers
	buffers []emulator.Buffer
	calls   []emulator.Call
}

// fewBytes is enough for several blocks of most kernels.
const fewBytes = 16 << 10

// Few returns one launch of each kernel, as the race detector is slow: the largest launch whose
// buffers have at most fewBytes, or else the smallest.
func (r *Recorder) Few() *emulator.Recording {
	few := &emulator.Recording{}
	for _, kernel := range slices.Sorted(maps.Keys(r.few)) {
		few.Add(2, r.few[kernel].buffers, r.few[kernel].calls)
	}
	return few
}

// NewRecorder returns a Recorder of the launches of host.
func NewRecorder(host tensor.Device) *Recorder {
	return &Recorder{Device: host, seen: map[string]bool{}, few: map[string]recorded{}}
}

// Launches returns the number of recorded launches.
func (r *Recorder) Launches() int { return len(r.seen) }

// Load implements tensor.Device.
func (r *Recorder) Load(s tensor.Workload) (tensor.Runner, error) {
	runner, err := r.Device.Load(s)
	if err != nil {
		return nil, err
	}
	return &recordingRunner{Runner: runner, recorder: r, schedule: s}, nil
}

type recordingRunner struct {
	tensor.Runner
	recorder *Recorder
	schedule tensor.Workload
}

// workspaceBegin is where workspace begins in the recorder's scratch arenas, after everything else.
const workspaceBegin = 1 << 40

// key identifies a launch by its kernel, its integers, and the arenas and sizes of its buffers.
func key(l *tensor.Launch) string {
	var s strings.Builder
	s.WriteString(l.Kernel)
	for _, a := range l.Arguments {
		if a.Buffer != nil {
			fmt.Fprintf(&s, " %v%d", a.Buffer.Arena, a.Buffer.Bytes())
		} else if a.Kind == tensor.Int32Kind {
			fmt.Fprintf(&s, " %d", a.Bits)
		}
	}
	return s.String()
}

// Run runs the first step launch by launch if it has launches to record.
func (r *recordingRunner) Run(steps int) error {
	isNew := func(l tensor.Launch) bool { return !r.recorder.seen[key(&l)] }
	if steps > 0 && slices.ContainsFunc(r.schedule.Launches, isNew) {
		for chain := range r.schedule.Chains {
			if err := r.step(chain); err != nil {
				return err
			}
		}
		steps--
	}
	return r.Runner.Run(steps)
}

func (r *recordingRunner) step(chain int) error {
	if err := r.record(chain, 0); err != nil {
		return err
	}
	return r.Runner.Step(chain, func(launch int) error { return r.record(chain, launch+1) })
}

// record records a launch that is about to run, unless an equal one was recorded.
func (r *recordingRunner) record(chain, launch int) error {
	if launch >= len(r.schedule.Launches) || r.recorder.seen[key(&r.schedule.Launches[launch])] {
		return nil
	}
	l := &r.schedule.Launches[launch]
	r.recorder.seen[key(l)] = true
	for _, pooled := range []bool{false, true} {
		if err := r.recordCalls(chain, launch, pooled); err != nil {
			return err
		}
	}
	return nil
}

// recordCalls records a launch's calls in each precision: on its own, or as pooling in an epilogue
// changes them.
func (r *recordingRunner) recordCalls(chain, launch int, pooled bool) error {
	l := &r.schedule.Launches[launch]
	var before []string
	for _, target := range []plan.Target{
		{Precision: FP32, Capability: 90}, {Precision: TF32, Capability: 90}, {Precision: BF16, Capability: 90}, {Precision: BF16, Capability: 90, WGMMA: true},
		{Precision: FP32, Capability: 70},
	} {
		target.Multiprocessors, target.Shared, target.Chains = 4, 227<<10, 2
		calls, inStep := plan.Variants(r.schedule.Launches, launch, target, workspaceBegin)
		if pooled {
			calls = inStep
		}
		var symbols []string
		for _, c := range calls {
			symbols = append(symbols, c.Symbol)
		}
		if slices.Equal(symbols, before) {
			continue
		}
		before = symbols
		if err := r.write(chain, l, calls, launch > 0); err != nil {
			return err
		}
	}
	return nil
}

func bytesOfScalar(a tensor.Argument) int {
	if a.Kind == tensor.Float64Kind {
		return 8
	}
	return 4
}

func (r *recordingRunner) write(chain int, l *tensor.Launch, calls []plan.Call, scratch bool) error {
	type place struct {
		arena  tensor.Arena
		offset int
	}
	numbers := map[place]int{}
	var buffers []emulator.Buffer
	var made []emulator.Call
	for _, c := range calls {
		e := emulator.Call{Symbol: c.Symbol, Blocks: c.Blocks, Threads: c.Threads, Shared: c.Shared, Ends: c.RowEnds}
		for _, a := range c.Arguments {
			if a.Buffer == nil {
				e.Arguments = append(e.Arguments, emulator.Argument{Value: a.Bits, Bytes: bytesOfScalar(a)})
				continue
			}
			at := place{a.Buffer.Arena, a.Buffer.Offset}
			number, known := numbers[at]
			if !known {
				number = len(buffers)
				numbers[at] = number
				b := emulator.Buffer{Shared: at.arena == tensor.Shared, Bytes: a.Buffer.Bytes()}
				if at.offset < workspaceBegin && (scratch || at.arena != tensor.Scratch) && a.Access&tensor.Read != 0 {
					b.Contents = make([]byte, b.Bytes)
					if err := r.Read(a.Buffer, chain, 0, b.Contents); err != nil {
						return err
					}
				}
				buffers = append(buffers, b)
			}
			e.Arguments = append(e.Arguments, emulator.Argument{Buffer: true, Value: uint64(number)})
		}
		made = append(made, e)
	}
	if len(made) == 0 {
		return nil
	}
	r.recorder.Add(2, buffers, made)
	bytes := 0
	for _, b := range buffers {
		bytes += b.Bytes
	}
	kernel := calls[0].Symbol
	before, known := r.recorder.few[kernel]
	if !known || (bytes > before.bytes) == (max(bytes, before.bytes) <= fewBytes) {
		r.recorder.few[kernel] = recorded{bytes, buffers, made}
	}
	return nil
}
