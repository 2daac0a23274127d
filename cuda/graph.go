package cuda

import (
	"cmp"
	"unsafe"

	"github.com/pkg/errors"
)

// The most launches of one CUDA graph, and the most steps.
const (
	graphLaunches = 1024
	graphSteps    = 16
)

// together is how many steps are in one CUDA graph.
func (p *part) together() int { return min(graphSteps, graphLaunches/max(1, len(p.calls))) }

// replay starts the steps as one CUDA graph, which it makes the first time.
func (p *part) replay(graph *handle, steps int) error {
	if *graph == 0 {
		var err error
		if *graph, err = p.assemble(steps); err != nil {
			return err
		}
	}
	return p.check("cuGraphLaunch", p.cuGraphLaunch(*graph, p.stream))
}

// assemble makes an executable CUDA graph of the calls of that many steps: each is a node, which
// follows only those that it must follow.
func (p *part) assemble(steps int) (handle, error) {
	var graph, executable handle
	if err := p.check("cuGraphCreate", p.cuGraphCreate(&graph, 0)); err != nil {
		return 0, err
	}
	failed := p.addNodes(graph, steps)
	if failed == nil {
		err := p.check("cuGraphInstantiateWithFlags", p.cuGraphInstantiateWithFlags(&executable, graph, 0))
		failed = errors.Wrapf(err, "a CUDA graph of %d launches%s", steps*len(p.calls), p.earlyRemedy())
	}
	failed = cmp.Or(failed, p.check("cuGraphDestroy", p.cuGraphDestroy(graph)))
	if failed != nil && executable != 0 {
		failed = cmp.Or(failed, p.check("cuGraphExecDestroy", p.cuGraphExecDestroy(executable)))
		executable = 0
	}
	return executable, failed
}

// addNodes adds the calls of that many steps to a CUDA graph.
func (p *part) addNodes(graph handle, steps int) error {
	follows := p.follows(steps)
	early := make([]bool, len(follows))
	if p.dependent {
		early = earlyCalls(follows)
	}
	nodes := make([]handle, 0, len(follows))
	for range steps {
		for _, s := range p.calls {
			var dependencies []handle
			for _, earlier := range follows[len(nodes)] {
				dependencies = append(dependencies, nodes[earlier])
			}
			n := p.node(s, 0, p.chains)
			var last []handle
			if early[len(nodes)] {
				last, dependencies = dependencies, nil
				var err error
				if n.function, err = p.function(s.symbol, s.shared, true); err != nil {
					return p.describe(err, s, n)
				}
			}
			var node handle
			code := p.cuGraphAddKernelNode(&node, graph, unsafe.SliceData(dependencies), uint64(len(dependencies)), &n)
			if err := p.check("cuGraphAddKernelNode", code); err != nil {
				return p.describe(err, s, n)
			}
			nodes = append(nodes, node)
			if last == nil {
				continue
			}
			// Keep one edge a call: drivers 580 to 610 apply the data of the first edge to all
			// edges of a call of cuGraphAddDependencies_v2, which would make every edge an early
			// one.
			code = p.cuGraphAddDependencies_v2(graph, &last[0], &node, &earlyEdge, 1)
			if err := p.check("cuGraphAddDependencies_v2", code); err != nil {
				return errors.Wrapf(p.describe(err, s, n), "an edge of a CUDA graph%s", p.earlyRemedy())
			}
		}
	}
	return nil
}

// earlyRemedy is what to do if the driver takes no graph with such edges.
func (p *part) earlyRemedy() string {
	if !p.dependent {
		return ""
	}
	return ", some of which may begin before others have ended; " + DependentVariable + "=off does without"
}

// follows are, for each call of that many steps, the earlier ones that it follows.
func (p *part) follows(steps int) [][]int {
	if !p.inLine {
		return orderOf(p.all(), steps).follows
	}
	return inLine(steps * len(p.calls))
}

// inLine is an order in which each of so many calls follows the one before it.
func inLine(calls int) [][]int {
	line := make([][]int, calls)
	for i := 1; i < len(line); i++ {
		line[i] = []int{i - 1}
	}
	return line
}
