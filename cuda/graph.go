package cuda

import (
	"cmp"
	"unsafe"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/cuda/internal/plan"
)

// The most launches of one CUDA graph, and the most steps.
const (
	graphLaunches = 1024
	graphSteps    = 16
)

// together is how many steps are in one CUDA graph.
func (p *shard) stepsPerGraph() int { return min(graphSteps, graphLaunches/max(1, len(p.step))) }

// replay starts the steps as one CUDA graph, which it makes the first time.
func (p *shard) replay(graph *handle, steps int) error {
	if *graph == 0 {
		var err error
		if *graph, err = p.buildGraph(steps); err != nil {
			return err
		}
	}
	return p.check("cuGraphLaunch", p.cuGraphLaunch(*graph, p.stream))
}

// assemble makes an executable CUDA graph of the calls of that many steps: each is a node, which
// follows only those that it must follow.
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

// addNodes adds the calls of that many steps to a CUDA graph.
func (p *shard) addNodes(graph handle, steps int) error {
	follows := p.dependencies(steps)
	early := make([]bool, len(follows))
	if p.pdl {
		early = plan.PDLCalls(follows)
	}
	nodes := make([]handle, 0, len(follows))
	for range steps {
		for _, s := range p.step {
			var dependencies []handle
			for _, earlier := range follows[len(nodes)] {
				dependencies = append(dependencies, nodes[earlier])
			}
			n := p.node(s, 0, p.chains)
			var last []handle
			if early[len(nodes)] {
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
			// Keep one edge a call: drivers 580 to 610 apply the data of the first edge to all
			// edges of a call of cuGraphAddDependencies_v2, which would make every edge an early
			// one.
			code = p.cuGraphAddDependencies_v2(graph, &last[0], &node, &pdlEdge, 1)
			if err := p.check("cuGraphAddDependencies_v2", code); err != nil {
				return errors.Wrapf(p.callError(err, s, n), "an edge of a CUDA graph%s", p.pdlHint())
			}
		}
	}
	return nil
}

// pdlHint is what to do if the driver takes no graph with such edges.
func (p *shard) pdlHint() string {
	if !p.pdl {
		return ""
	}
	return ", some of which may begin before others have ended; " + PDLVariable + "=off does without"
}

// follows are, for each call of that many steps, the earlier ones that it follows.
func (p *shard) dependencies(steps int) [][]int {
	if !p.sequential {
		return plan.Dependencies(p.stepCalls(), steps)
	}
	return plan.Sequential(steps * len(p.step))
}
