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

// warpSize is the number of threads that run in lockstep.
const warpSize = 32

// Model describes the performance of a GPU for Predict's estimates.
type Model struct {
	Name            string
	Capability      int     // 10 major + minor
	Shared          int     // the most bytes of shared memory that a block may have
	Multiprocessors int     // each issues up to four instructions per cycle, of 32 threads each
	Clock           float64 // Hz
	Issue           float64 // the fraction of issue slots that a fully occupied multiprocessor uses
	Memory, Cache   float64 // bytes per second of global memory and of the second-level cache
	CacheBytes      float64
	NodeLatency     float64 // seconds from the end of a call's work to the begin of a dependent call's work
	PDL             float64 // the same with programmatic dependent launch, if the first call took long enough
	Floor           float64 // seconds that the smallest call takes once it has begun; with PDL it ends 1.6 µs after the one before it
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

// ModelOf returns the model of a GPU by the driver's name for it, such as "NVIDIA H100 80GB HBM3",
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

// Predicted describes a call and the time that it is estimated to take.
type Predicted struct {
	Launch, Label, Kernel string
	Blocks                [2]int  // of each chain
	Seconds               float64 // from the begin to the end of its work, without the launch; at least Model.Floor
	Bound                 string  // what limits it: "product", "issue", "memory", "cache" or "launch"
	Bytes                 float64 // that all chains read and write
	Fraction              float64 // of the GPU that it occupies
	Large                 bool    // whether its blocks occupy a good part of the GPU's multiprocessors
	End                   float64 // seconds after the begin of the step
	Slack                 float64 // seconds by which it could end later without delaying the step; 0 on the critical path
}

// Predict estimates the times of a step's calls and of the whole step, whose calls overlap as far
// as their dependencies and the GPU's size allow (simulate). The time of a product comes from the
// estimated cycles by which its kernel was chosen. The time of another kernel comes from the bytes
// that it moves or, where kernels.Loops counts them, from its instructions. The variables that
// leave features out apply as in Open; without CUDA graphs, calls run one after another.
func Predict(w tensor.Workload, m Model, precision Precision) (calls []Predicted, step float64, err error) {
	allowed, err := readFeatures()
	if err != nil {
		return nil, 0, err
	}
	m.Capability = allowed.capability(m.Capability)
	m = m.withPDL(allowed.pdl && m.Capability >= kernels.DependentCapability)
	all, err := plan.Step(w.Launches, allowed.target(precision, m.Capability, m.Multiprocessors, m.Shared, w.Chains))
	if err != nil {
		return nil, 0, err
	}
	footprint := float64(w.Chains * (w.Bytes[tensor.Chain] + w.Bytes[tensor.Scratch]))
	for _, c := range all {
		calls = append(calls, predictedOf(m, w.Launches, c, w.Chains, footprint))
	}
	follows := plan.Sequential(len(all))
	if allowed.graphs == "on" && allowed.reordering {
		follows = plan.Dependencies(all)
	}
	return calls, simulate(calls, follows, m), nil
}

// predictedOf describes a call and estimates its time.
func predictedOf(m Model, launches []tensor.Launch, c plan.Call, chains int, footprint float64) Predicted {
	l := launches[c.Launch]
	label := l.Label
	if n := len(c.RowEnds); n > 1 {
		label += fmt.Sprintf(" and %d more", n-1)
	}
	p := Predicted{
		Launch: l.Kernel, Label: label, Kernel: c.Symbol, Blocks: c.Blocks, Bytes: c.Bytes() * float64(chains),
		Large: c.Large(chains, m.Multiprocessors),
	}
	p.predict(m, c, chains, footprint)
	return p
}

// withPDL returns the model with or without programmatic dependent launch.
func (m Model) withPDL(on bool) Model {
	if !on {
		m.PDL = m.NodeLatency
	}
	return m
}

// simulate sets the calls' End and Slack, and returns the end of the step. It is a list schedule:
// in sequence, each call is placed at the earliest time at which the calls that it follows allow it
// to begin and, until it ends, its fraction of the GPU is free next to the calls already placed.
func simulate(calls []Predicted, follows [][]int, m Model) (end float64) {
	begin, large := make([]float64, len(calls)), make([]bool, len(calls))
	for i, c := range calls {
		large[i] = c.Large
	}
	pdl := plan.PDLCalls(follows, large)
	// ready returns the earliest time at which the work of call i can begin after the call before.
	ready := func(i, before int) float64 {
		if pdl[i] {
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

// earliestFit returns the earliest time, not before ready, at which a call can begin so that the
// fractions of the calls running at any time sum to at most 1. after is the placed call whose end
// determines that time, or -1 if the call can begin at ready.
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

// predict estimates the time of a call. footprint is the number of bytes that a step touches: if
// they fit into the second-level cache, all of them are assumed to be there.
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
		// Multiprocessors without a block issue nothing.
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

// resident returns how many blocks of a call the GPU holds at once. They are limited by their
// threads, their shared memory and their registers; a multiprocessor has 64 Ki registers. A thread
// of a product is assumed to use 128 registers, of another kernel 32.
func (m Model) resident(c plan.Call) int {
	const threads, registers, reserved = 2048, 64 << 10, 1 << 10 // reserved: bytes of each block
	each := 32
	if c.Cycles > 0 {
		each = 128
	}
	blocks := min(threads/c.Threads, (m.Shared+reserved)/(c.Shared+reserved), registers/(each*c.Threads))
	return m.Multiprocessors * max(1, blocks)
}
