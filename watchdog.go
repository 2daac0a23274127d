package pollen

import (
	"fmt"
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/langevin"
)

// spareRoom is what is left free on a disk besides what the next checkpoints need.
const spareRoom = 4 << 20

// checkRoom refuses to go on where the next checkpoint and samples, with twice what they need,
// might not find room: while one is written, the one before and its temporary file are there.
func (t *training) checkRoom() error {
	state, sample := t.room()
	wants := 2*(state+sample*uint64(t.spec.Chains)) + spareRoom
	free, err := file.Free(t.dir)
	if err != nil {
		return errors.Wrap(err, "pollen")
	}
	if free < wants {
		return errors.WithStack(&DiskFullError{t.dir, free, wants})
	}
	return nil
}

// room is how many bytes a checkpoint takes now, and a sample of one chain.
func (t *training) room() (state, sample uint64) {
	state = uint64(t.session.ChainBytes() * t.session.Chains())
	if t.measured != nil {
		state += t.measured.TraceBytes()
	}
	for _, p := range t.session.Program().Parameters() {
		sample += 4 * uint64(p.Shape.Elements())
	}
	return state, sample
}

// muchRoom is from how many bytes on a run says what it will take on the disk before it begins.
const muchRoom = 256 << 20

// remarkRoom says what the run will take on the disk when it is least bytes or more than there are.
func (t *training) remarkRoom(dir string, least uint64) error {
	state, sample := t.room()
	most := t.plan.Samples()
	if t.spec.Keep > 0 {
		most = min(most, t.spec.Keep)
	}
	if c := t.kind.traits(); c.drawn {
		most = t.spec.Samples
	} else if c.collected {
		most += t.spec.Samples
	}
	most *= t.spec.Chains
	wants := 2*state + uint64(most)*sample
	free, err := file.Free(dir)
	if err != nil {
		return errors.Wrap(err, "pollen")
	}
	short := free < wants+spareRoom
	if wants < least && !short {
		return nil
	}
	text := fmt.Sprintf("on the disk: %d samples of %.3g MB and two checkpoints, some %.3g MB", most, megabytes(sample), megabytes(wants))
	if short {
		text += fmt.Sprintf("; only %.3g MB are free: the run stops before they are used up; keep bounds the samples that stay", megabytes(free))
	}
	t.remark(text)
	return nil
}

// A chain has left for good when, in the sampling phase, its loss was that of guessing or worse for
// so many windows in a row. The temperature is far off when it differs from the requested one by
// more than farOff of it and manyErrors standard errors, after so many windows.
const (
	goneWindows = 5
	farOff      = 0.5
	manyErrors  = 5
	warmWindows = 20
)

// guard remembers what was remarked of a run, so that it is said once.
type guard struct {
	bad     []int // windows in a row, by chain
	windows int   // in the sampling phase
	warned  bool  // of the temperature
}

// watch remarks chains that left, and temperatures that are far off, while there is time to stop
// the run.
func (t *training) watch(p langevin.Window, losses []float64) {
	if !t.kind.traits().tempered || p.From < t.plan.BurnIn || t.spec.temperature() == 0 || t.plan.Cycles > 0 {
		return
	}
	g := &t.guard
	g.windows++
	if g.bad == nil {
		g.bad = make([]int, len(losses))
	}
	guessing, well := math.Log(float64(t.data.Classes)), 0
	for _, loss := range losses {
		if loss < guessing {
			well++
		}
	}
	for i, loss := range losses {
		if loss < guessing {
			g.bad[i] = 0
			continue
		}
		if g.bad[i]++; g.bad[i] == goneWindows && well > 0 {
			t.remark(fmt.Sprintf("chain %d left: its loss of %.3g is worse than guessing, for %d windows, that of %d others is better; its samples spoil the average",
				t.spec.FirstChain+i, loss, goneWindows, well))
		}
	}
	requested := t.spec.temperature()
	measured, std := t.measured.Thermometer.Temperature(), t.measured.Thermometer.TemperatureError()
	if off := math.Abs(measured - requested); !g.warned && g.windows >= warmWindows && off > farOff*requested && off > manyErrors*std {
		g.warned = true
		t.remark(fmt.Sprintf("the temperature is far off: measured %.3g ± %.1g, requested %g; smaller learning rates or a longer burn-in would bring it closer",
			measured, std, requested))
	}
}
