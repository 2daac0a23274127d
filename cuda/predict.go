package cuda

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/pollen-ml/pollen/cuda/internal/plan"
	"github.com/pollen-ml/pollen/cuda/kernels"
	"github.com/pollen-ml/pollen/tensor"
)

// warpSize is how many threads run in lockstep.
const warpSize = 32

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
	NodeLatency     float64 // seconds from the end of a launch's work to that of one behind it
	PDL             float64 // that of one which could begin early, if the launch before it took long enough
	Floor           float64 // seconds that the smallest call takes once it has begun: with Early, 1.6 µs after the one before it
}

// The models of two GPUs. Memory is 0.85 of the rate at which each copies within its own memory,
// 3.0 and 4.3 TB/s: as much as updates reach on an H100, whose times are in benchmarks/history.
// Clock and launches agree with these times. The H200's other figures are taken from the H100.
// Cache, issue and the tiles' speeds are estimates: calls take up to twice as long as predicted,
// steps 1.2 to 1.3 times.
var (
	H100 = Model{
		Name: "NVIDIA H100 80GB HBM3", Capability: 90, Shared: 227 << 10, Multiprocessors: 132, Clock: 1.8e9, Issue: 0.7,
		Memory: 0.85 * 3.0e12, Cache: 5.5e12, CacheBytes: 50 << 20, NodeLatency: plan.CyclesPerLaunch / 1.8e9, PDL: 0.7e-6, Floor: 0.9e-6,
	}
	H200 = Model{
		Name: "NVIDIA H200", Capability: 90, Shared: 227 << 10, Multiprocessors: 132, Clock: 1.8e9, Issue: 0.7,
		Memory: 0.85 * 4.3e12, Cache: 5.5e12, CacheBytes: 60 << 20, NodeLatency: plan.CyclesPerLaunch / 1.8e9, PDL: 0.7e-6, Floor: 0.9e-6,
	}
)

// ModelOf returns the model for a GPU by the driver's name for it, such as "NVIDIA H100 80GB HBM3",
// and whether there is one.
func ModelOf(gpuName string) (Model, bool) {
	switch {
	case strings.HasPrefix(gpuName, "NVIDIA H100"):
		return H100, true
	case strings.HasPrefix(gpuName, "NVIDIA H200"):
		return H200, true
	}
	return Model{}, false
}

// Predicted is the time that a call is predicted to take by itself, after its launch, and what
// bounds it: the model's floor at least.
type Predicted struct {
	Launch, Label, Kernel string
	Blocks                [2]int // of each chain
	Seconds               float64
	Bound                 string  // "product", "issue", "memory", "cache" or "launch"
	Bytes                 float64 // that all chains read and write
	Fraction              float64 // of the GPU that it occupies meanwhile
	End                   float64 // after the step's begin
	Slack                 float64 // how much later it might end without the last call ending later: 0 along the longest line of calls
}

// Predict returns how long the calls of a workload's step take on a GPU, and the step, whose calls
// run side by side as far as their order and the GPU's size allow (simulate). It is a model: of a
// product the cost by which its tile is chosen, of other kernels the bytes and, where kernels.Loops
// knows them, the instructions. The variables that leave features out count as they do for Open;
// without CUDA graphs calls run one after another.
func Predict(s tensor.Workload, m Model, precision Precision) (calls []Predicted, step float64, err error) {
	allowed, err := readFeatures()
	if err != nil {
		return nil, 0, err
	}
	m.Capability = allowed.capability(m.Capability)
	m = m.withPDL(allowed.pdl && m.Capability >= kernels.DependentCapability)
	target := plan.Target{
		Precision: precision, Multiprocessors: m.Multiprocessors, Capability: m.Capability, Chains: s.Chains, Shared: m.Shared,
		WGMMA: allowed.wgmma && m.Capability == plan.SM90, NoPacking: !allowed.packing, NoWindows: !allowed.windows,
	}
	all, err := plan.Step(s.Launches, target)
	if err != nil {
		return nil, 0, err
	}
	footprint := float64(s.Chains * (s.Bytes[tensor.Chain] + s.Bytes[tensor.Scratch]))
	for _, c := range all {
		calls = append(calls, predictedOf(m, s.Launches, c, s.Chains, footprint))
	}
	follows := plan.Sequential(len(all))
	if allowed.graphs == "on" && allowed.reordering {
		follows = plan.Dependencies(all, 1)
	}
	return calls, simulate(calls, follows, m), nil
}

// predictedOf describes a call and predicts its time.
func predictedOf(m Model, launches []tensor.Launch, c plan.Call, chains int, footprint float64) Predicted {
	l := launches[c.Launch]
	label := l.Label
	if n := len(c.RowEnds); n > 1 {
		label += fmt.Sprintf(" and %d more", n-1)
	}
	p := Predicted{Launch: l.Kernel, Label: label, Kernel: c.Symbol, Blocks: c.Blocks, Bytes: c.Bytes() * float64(chains)}
	p.predict(m, c, chains, footprint)
	return p
}

// edges is the model of a GPU whose calls may begin early, or may not.
func (m Model) withPDL(early bool) Model {
	if !early {
		m.PDL = m.NodeLatency
	}
	return m
}

// simulate fills in when the calls of a step end, each of which follows others, and returns the
// last end. It is a list schedule: in the order of the sequence, each call takes the earliest time
// at which those that it follows let it begin and at which, until it ends, its fraction of the
// GPU is free beside the calls placed so far.
func simulate(calls []Predicted, follows [][]int, m Model) (end float64) {
	begin, early := make([]float64, len(calls)), plan.PDLCalls(follows)
	// ready is when a call's work could begin for one that it follows.
	ready := func(i, before int) float64 {
		if early[i] {
			return max(calls[before].End+m.PDL, begin[before]+m.NodeLatency)
		}
		return calls[before].End + m.NodeLatency
	}
	after := make([]int, len(calls)) // the call whose end made room for this one, or -1
	for i := range calls {
		earliest := m.NodeLatency
		for _, before := range follows[i] {
			earliest = max(earliest, ready(i, before))
		}
		begin[i], after[i] = earliestFit(calls[:i], begin, calls[i], earliest)
		calls[i].End = begin[i] + calls[i].Seconds
		end = max(end, calls[i].End)
	}
	for i := range calls {
		calls[i].Slack = end - calls[i].End
	}
	for i := len(calls) - 1; i >= 0; i-- {
		for _, before := range follows[i] {
			calls[before].Slack = max(0, min(calls[before].Slack, calls[i].Slack+begin[i]-ready(i, before)))
		}
		if before := after[i]; before >= 0 {
			calls[before].Slack = min(calls[before].Slack, calls[i].Slack)
		}
	}
	return end
}

// room returns the earliest begin of a call, not before ready, with which the fractions of all
// calls that run at a time stay within 1, and the placed call whose end it is; -1 if it is ready.
func earliestFit(placed []Predicted, begin []float64, c Predicted, ready float64) (at float64, after int) {
	var late []int // the placed calls that end after ready, by their ends
	for i, p := range placed {
		if p.End > ready {
			late = append(late, i)
		}
	}
	slices.SortStableFunc(late, func(i, j int) int { return cmp.Compare(placed[i].End, placed[j].End) })
	// occupied is the sum of the fractions at one time.
	occupied := func(time float64) (sum float64) {
		for _, i := range late {
			if begin[i] <= time && time < placed[i].End {
				sum += placed[i].Fraction
			}
		}
		return sum
	}
	const within = 1 + 1e-9
	fits := func(at float64) bool {
		if occupied(at)+c.Fraction > within {
			return false
		}
		for _, i := range late { // the sum grows only where a call begins
			if at < begin[i] && begin[i] < at+c.Seconds && occupied(begin[i])+c.Fraction > within {
				return false
			}
		}
		return true
	}
	at, after = ready, -1
	for next := 0; next < len(late) && !fits(at); next++ {
		at, after = placed[late[next]].End, late[next]
	}
	return at, after
}

// predict fills in the time. What a step touches is in the cache if all of it fits.
func (p *Predicted) predict(m Model, c plan.Call, chains int, footprint float64) {
	p.Seconds, p.Bound = p.Bytes/m.Memory, "memory"
	if footprint <= m.CacheBytes {
		p.Seconds, p.Bound = p.Bytes/m.Cache, "cache"
	}
	bandwidth := p.Seconds
	if product := c.Cycles / m.Clock; product > p.Seconds {
		p.Seconds, p.Bound = product, "product"
	}
	issue := 0.0
	if loop := kernels.Loops[c.Symbol]; loop.Items > 0 {
		// Multiprocessors without a block are idle.
		rounds := float64(c.ElementsWritten()*chains) / float64(warpSize*loop.Items)
		busy := math.Min(1, float64(c.Blocks[0]*chains)/float64(m.Multiprocessors))
		issue = rounds * float64(loop.Slots) / (4 * m.Clock * m.Issue * float64(m.Multiprocessors) * busy)
	}
	if issue > p.Seconds {
		p.Seconds, p.Bound = issue, "issue"
	}
	if p.Seconds < m.Floor {
		p.Seconds, p.Bound = m.Floor, "launch"
	}
	p.Fraction = max(bandwidth/p.Seconds, math.Min(1, float64(c.Blocks[0]*max(1, c.Blocks[1])*chains)/float64(m.resident(c))))
}

// resident is how many blocks of a call the GPU holds at once, by their threads, shared memory and
// registers: 64 Ki of a multiprocessor, of which each thread of a product is taken to need 128, of
// another kernel 32.
func (m Model) resident(c plan.Call) int {
	const threads, registers, reserved = 2048, 64 << 10, 1 << 10 // reserved: bytes of each block
	each := 32
	if c.Cycles > 0 {
		each = 128
	}
	blocks := min(threads/c.Threads, (m.Shared+reserved)/(c.Shared+reserved), registers/(each*c.Threads))
	return m.Multiprocessors * max(1, blocks)
}
