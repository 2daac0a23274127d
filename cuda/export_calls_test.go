package cuda

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/pollen-ml/pollen/tensor"
)

// Describe lists what the device's first GPU starts for a schedule, without taking memory for it.
func (d *device) Describe(s tensor.Workload) []string {
	g := d.gpus[0]
	p := &part{gpu: g, chains: s.Chains, launches: s.Launches}
	if err := g.do(func() error { return p.plan(s, d.options.Precision) }); err != nil {
		return []string{fmt.Sprintf("the calls are not known: %v", err)}
	}
	return p.describeCalls()
}

// Calls lists what the first GPU of a loaded schedule starts.
func Calls(r tensor.Runner) []string { return r.(*runner).parts[0].describeCalls() }

// describeCalls has a line for each call of a step, and for those of launches that run by
// themselves, where they differ.
func (p *part) describeCalls() (lines []string) {
	var inStep []string
	for _, s := range p.calls {
		inStep = append(inStep, p.describeCall(s.call))
	}
	for i, line := range inStep {
		lines = append(lines, fmt.Sprintf("  step %d: %s", i, line))
	}
	for _, starts := range p.own {
		for _, s := range starts {
			if line := p.describeCall(s.call); !slices.Contains(inStep, line) {
				lines = append(lines, "  alone: "+line)
			}
		}
	}
	return lines
}

// describeCall is a call in a line: its kernel, blocks, threads, bytes of shared memory, launch,
// and arguments, of which buffers have an arena and an offset.
func (p *part) describeCall(c call) string {
	var arguments []string
	for _, a := range c.arguments {
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
	if c.ends != nil {
		rows = fmt.Sprintf(" rows=%v", c.ends)
	}
	l := &p.launches[c.launch]
	return fmt.Sprintf("%s blocks=%dx%dx%d threads=%d shared=%d%s launch=%d (%s, %s) arguments=(%s)", c.symbol, c.blocks[0], max(1, c.blocks[1]),
		p.chains, c.threads, c.shared, rows, c.launch, l.Kernel, l.Label, strings.Join(arguments, "; "))
}
