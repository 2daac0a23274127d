package cuda

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/pollen-ml/pollen/cuda/internal/plan"
	"github.com/pollen-ml/pollen/tensor"
)

// Describe lists the calls of the device's first GPU for a workload, without allocating memory for
// it.
func (d *device) Describe(s tensor.Workload) []string {
	g := d.gpus[0]
	p := &shard{gpu: g, chains: s.Chains, launches: s.Launches}
	if err := g.do(func() error { return p.plan(s, d.options.Precision) }); err != nil {
		return []string{fmt.Sprintf("the calls are not known: %v", err)}
	}
	return p.describeCalls()
}

// Calls lists the calls of the first GPU of a loaded workload.
func Calls(r tensor.Runner) []string { return r.(*runner).shards[0].describeCalls() }

// describeCalls returns a line for each call of a step, and for each separate call of a launch that
// differs from these.
func (p *shard) describeCalls() (lines []string) {
	var inStep []string
	for _, s := range p.step {
		inStep = append(inStep, p.describeCall(s.Call))
	}
	for i, line := range inStep {
		lines = append(lines, fmt.Sprintf("  step %d: %s", i, line))
	}
	for _, starts := range p.separate {
		for _, s := range starts {
			if line := p.describeCall(s.Call); !slices.Contains(inStep, line) {
				lines = append(lines, "  separate: "+line)
			}
		}
	}
	return lines
}

// describeCall describes a call in one line: its kernel, blocks, threads, bytes of shared memory,
// launch and arguments, with the arena and offset of buffers.
func (p *shard) describeCall(c plan.Call) string {
	var arguments []string
	for _, a := range c.Arguments {
		text := fmt.Sprint(int32(a.Bits))
		switch {
		case a.Buffer != nil:
			text = a.Buffer.String()
		case a.Kind == tensor.Float32Kind:
			text = fmt.Sprintf("%gf", math.Float32frombits(uint32(a.Bits)))
		case a.Kind == tensor.Float64Kind:
			text = fmt.Sprintf("%gd", math.Float64frombits(a.Bits))
		}
		arguments = append(arguments, text)
	}
	rows := ""
	if c.RowEnds != nil {
		rows = fmt.Sprintf(" rows=%v", c.RowEnds)
	}
	l := &p.launches[c.Launch]
	return fmt.Sprintf("%s blocks=%dx%dx%d threads=%d shared=%d%s launch=%d (%s, %s) arguments=(%s)", c.Symbol, c.Blocks[0], max(1, c.Blocks[1]),
		p.chains, c.Threads, c.Shared, rows, c.Launch, l.Kernel, l.Label, strings.Join(arguments, "; "))
}

// FitsSlicedK reports whether a device has the shared memory for a tile of plan.SlicedKTiles.
func FitsSlicedK(d tensor.Device, precision Precision, number int) bool {
	return plan.SlicedKShared(precision, number) <= d.(*device).gpus[0].maxShared
}

// Capability returns the compute capability of a device's first GPU: 90 for 9.0.
func Capability(d tensor.Device) int { return d.(*device).gpus[0].capability() }

// Blocks returns the blocks of a kernel in a step of a runner.
func Blocks(r tensor.Runner, symbol string) [2]int {
	for _, c := range r.(*runner).shards[0].stepCalls() {
		if c.Symbol == symbol {
			return c.Blocks
		}
	}
	return [2]int{}
}

// Symbols returns the names of the kernels of a step of a runner.
func Symbols(r tensor.Runner) (all []string) {
	for _, c := range r.(*runner).shards[0].stepCalls() {
		all = append(all, c.Symbol)
	}
	return all
}

// AheadSymbols returns the symbols of the calls that a runner's first shard may make before the
// preceding step has ended.
func AheadSymbols(r tensor.Runner) (all []string) {
	s := r.(*runner).shards[0]
	if s.ahead == nil {
		return nil
	}
	for i, c := range s.step {
		if s.ahead.Calls[i] {
			all = append(all, c.Symbol)
		}
	}
	return all
}
