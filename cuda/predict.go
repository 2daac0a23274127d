package cuda

import (
	"fmt"
	"math"

	"github.com/pollen-ml/pollen/cuda/kernels"
	"github.com/pollen-ml/pollen/tensor"
)

// Model is a GPU as predictions see it.
type Model struct {
	Name            string
	Capability      int     // 10 major + minor
	Shared          int     // bytes of shared memory that a block may have
	Multiprocessors int     // each issues four instructions in a cycle, of 32 threads
	Clock           float64 // cycles a second
	Issue           float64 // the share of cycles in which a full multiprocessor issues what it could
	Memory, Cache   float64 // bytes a second, of the GPU's memory and of its second-level cache
	CacheBytes      float64
	Node            float64 // seconds from the end of a launch's work to that of one behind it
	Early           float64 // that of one which could begin early, if the launch before it took long enough
}

// H200 is the GPU for which the tiles' speeds are estimated. The data sheet has 132 multiprocessors
// and 4.8 TB/s, of which a copy gets some nine tenths; clock, cache, issue and launches are
// estimates until a measured record corrects them.
var H200 = Model{
	Name: "NVIDIA H200", Capability: 90, Shared: 227 << 10, Multiprocessors: 132, Clock: 1.8e9, Issue: 0.7,
	Memory: 0.9 * 4.8e12, Cache: 7e12, CacheBytes: 50 << 20, Node: costOfLaunch / 1.8e9, Early: 0.7e-6,
}

// Predicted is the time that a call is predicted to take by itself, after its launch, and what
// bounds it.
type Predicted struct {
	Launch, Label, Kernel string
	Blocks                [2]int // of each chain
	Seconds               float64
	Bound                 string  // "product", "issue", "memory", "cache" or "launch"
	Bytes                 float64 // that all chains read and write
	End                   float64 // after the step's begin, if it waited for nothing but the calls that it follows
	Slack                 float64 // how much later it might end without the last call ending later: 0 along the longest line of calls
}

// Predict says how long the calls of a workload's step take on a GPU, and the whole step: the time
// that all work takes, but no less than the longest line of calls that follow one another. It is a
// model: of a product the cost by which its tile is chosen, of other kernels the bytes and, where
// kernels.Loops knows them, the instructions. WGMMAVariable counts as it does for Open.
func Predict(s tensor.Workload, m Model, precision Precision) (calls []Predicted, step float64, err error) {
	allowed, err := readSwitches()
	if err != nil {
		return nil, 0, err
	}
	m.Capability = allowed.capability(m.Capability)
	if !allowed.dependent || m.Capability < kernels.DependentCapability {
		m.Early = m.Node
	}
	place := placement{
		precision: precision, multiprocessors: m.Multiprocessors, capability: m.Capability, chains: s.Chains, shared: m.Shared,
		groups: allowed.groups && m.Capability == groupable, unpacked: !allowed.packing, windowless: !allowed.windows,
	}
	all, _, err := stepCalls(s.Launches, &place)
	if err != nil {
		return nil, 0, err
	}
	for _, c := range all {
		l := s.Launches[c.launch]
		label := l.Label
		if n := len(c.ends); n > 1 {
			label += fmt.Sprintf(" and %d more", n-1)
		}
		calls = append(calls, Predicted{Launch: l.Kernel, Label: label, Kernel: c.symbol, Blocks: c.blocks, Bytes: bytesOf(c) * float64(s.Chains)})
	}
	footprint := float64(s.Chains * (s.Bytes[tensor.Chain] + s.Bytes[tensor.Scratch]))
	work := 0.0
	for i, c := range all {
		calls[i].predict(m, c, s.Chains, footprint)
		work += calls[i].Seconds
	}
	return calls, max(work, line(calls, orderOf(all, 1).follows, m)), nil
}

// line fills in when the calls of a step end, each of which follows others, and returns the last
// end. The last of those that a call follows lets it begin early.
func line(calls []Predicted, follows [][]int, m Model) (end float64) {
	// begins is when a call's work could begin for one that it follows.
	begins := func(i, before int) float64 {
		b := calls[before]
		if before == follows[i][0] {
			return max(b.End+m.Early, b.End-b.Seconds+m.Node)
		}
		return b.End + m.Node
	}
	for i := range calls {
		begin := m.Node
		for _, before := range follows[i] {
			begin = max(begin, begins(i, before))
		}
		calls[i].End = begin + calls[i].Seconds
		end = max(end, calls[i].End)
	}
	for i := range calls {
		calls[i].Slack = end - calls[i].End
	}
	for i := len(calls) - 1; i >= 0; i-- {
		for _, before := range follows[i] {
			calls[before].Slack = max(0, min(calls[before].Slack, calls[i].Slack+calls[i].End-calls[i].Seconds-begins(i, before)))
		}
	}
	return end
}

// predict fills in the time. What a step touches is in the cache if all of it fits.
func (p *Predicted) predict(m Model, c call, chains int, footprint float64) {
	p.Seconds, p.Bound = p.Bytes/m.Memory, "memory"
	if footprint <= m.CacheBytes {
		p.Seconds, p.Bound = p.Bytes/m.Cache, "cache"
	}
	if product := c.cycles / m.Clock; product > p.Seconds {
		p.Seconds, p.Bound = product, "product"
	}
	issue := 0.0
	if loop := kernels.Loops[c.symbol]; loop.Items > 0 {
		// Multiprocessors without a block are idle.
		rounds := float64(elementsOf(c)*chains) / float64(warp*loop.Items)
		busy := math.Min(1, float64(c.blocks[0]*chains)/float64(m.Multiprocessors))
		issue = rounds * float64(loop.Slots) / (4 * m.Clock * m.Issue * float64(m.Multiprocessors) * busy)
	}
	if issue > p.Seconds {
		p.Seconds, p.Bound = issue, "issue"
	}
	if p.Seconds < m.Node {
		p.Bound = "launch"
	}
}

// bytesOf is what a call reads and writes for one chain, each buffer once. Of what all chains share
// it reads no more than it writes.
func bytesOf(c call) float64 {
	seen := map[*tensor.Buffer]tensor.Access{}
	for _, a := range c.arguments {
		if a.Buffer != nil && a.Buffer.Arena != tensor.Shared {
			seen[a.Buffer] |= a.Access
		}
	}
	bytes := 0.0
	for b, access := range seen {
		for _, way := range []tensor.Access{tensor.Read, tensor.Write} {
			if access&way != 0 {
				bytes += float64(b.Bytes())
			}
		}
	}
	return bytes
}

// elementsOf is how many elements an update or an elementwise call has: those of the largest buffer
// that it writes, of each row.
func elementsOf(c call) (all int) {
	rows := [][]tensor.Argument{c.arguments}
	if c.ends != nil {
		rows = c.rows()
	}
	for _, row := range rows {
		most := 0
		for _, a := range row {
			if a.Buffer != nil && a.Access&tensor.Write != 0 {
				most = max(most, a.Buffer.Elements)
			}
		}
		all += most
	}
	return all
}
