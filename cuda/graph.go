package cuda

import (
	"cmp"
	"unsafe"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/cuda/internal/plan"
)

// The limits of one CUDA graph.
const (
	graphLaunches = 1024
	graphSteps    = 16
)

// stepsPerGraph is the number of steps in the graph of several steps.
func (p *shard) stepsPerGraph() int { return min(graphSteps, graphLaunches/max(1, len(p.step))) }

// replay launches a graph of steps, which it builds the first time. A graph holds the values of all
// arguments, which never change: what differs between steps, such as the step's number, the
// schedules and the minibatch, is data in the GPU's memory.
func (p *shard) replay(graph *handle, steps int) error {
	if *graph == 0 {
		var err error
		if *graph, err = p.buildGraph(steps); err != nil {
			return err
		}
	}
	return p.check("cuGraphLaunch", p.cuGraphLaunch(*graph, p.stream))
}

// buildGraph returns an executable CUDA graph of steps. Each call is a kernel node, with edges from
// the calls that it must directly follow, also across steps: the first calls of a step may run next
// to the last ones of the step before it.
func (p *shard) buildGraph(steps int) (handle, error) {
	var graph, executable handle
	if err := p.check("cuGraphCreate", p.cuGraphCreate(&graph, 0)); err != nil {
		return 0, err
	}
	failed := p.addNodes(graph, steps)
	if failed == nil {
		err := p.check("cuGraphInstantiateWithFlags", p.cuGraphInstantiateWithFlags(&executable, graph, 0))
		failed = errors.Wrapf(err, "a CUDA graph of %d launches%s", steps*len(p.step), p.pdlHint())
	}
	failed = cmp.Or(failed, p.check("cuGraphDestroy", p.cuGraphDestroy(graph)))
	if failed != nil && executable != 0 {
		failed = cmp.Or(failed, p.check("cuGraphExecDestroy", p.cuGraphExecDestroy(executable)))
		executable = 0
	}
	return executable, failed
}

// addNodes adds the calls of steps to a CUDA graph. A call that may begin early gets its only edge
// afterwards, as a programmatic one.
func (p *shard) addNodes(graph handle, steps int) error {
	all := p.steps(steps)
	follows := p.dependencies(all)
	pdl := make([]bool, len(follows))
	if p.pdl {
		large := make([]bool, len(all))
		for i, s := range all {
			large[i] = s.Large(p.chains, p.Multiprocessors)
		}
		pdl = plan.PDLCalls(follows, large)
	}
	nodes := make([]handle, 0, len(follows))
	for _, s := range all {
		var dependencies []handle
		for _, earlier := range follows[len(nodes)] {
			dependencies = append(dependencies, nodes[earlier])
		}
		n := p.node(s, 0, p.chains)
		var last []handle
		if pdl[len(nodes)] {
			last, dependencies = dependencies, nil
			var err error
			if n.function, err = p.function(s.Symbol, s.Shared, true); err != nil {
				return p.callError(err, s, n)
			}
		}
		var node handle
		code := p.cuGraphAddKernelNode(&node, graph, unsafe.SliceData(dependencies), uint64(len(dependencies)), &n)
		if err := p.check("cuGraphAddKernelNode", code); err != nil {
			return p.callError(err, s, n)
		}
		nodes = append(nodes, node)
		if last == nil {
			continue
		}
		// Add one edge at a time: drivers 580 to 610 apply the data of the first edge to all
		// edges of a call of cuGraphAddDependencies_v2, which would make every edge
		// programmatic.
		code = p.cuGraphAddDependencies_v2(graph, &last[0], &node, &pdlEdge, 1)
		if err := p.check("cuGraphAddDependencies_v2", code); err != nil {
			return errors.Wrapf(p.callError(err, s, n), "a programmatic edge of a CUDA graph%s", p.pdlHint())
		}
	}
	return nil
}

// pdlHint returns advice for the case that the driver rejects programmatic edges, or "" if the GPU
// has none.
func (p *shard) pdlHint() string {
	if !p.pdl {
		return ""
	}
	return ", with programmatic dependent launch (" + PDLVariable + "=off leaves it out)"
}

// dependencies returns, for each call, the indices of the earlier calls that it must directly
// follow.
func (p *shard) dependencies(calls []boundCall) [][]int {
	if p.sequential {
		return plan.Sequential(len(calls))
	}
	return plan.InLine(plan.Dependencies(unbound(calls)))
}
