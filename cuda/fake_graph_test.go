//go:build linux

package cuda

import (
	"math/rand/v2"
	"slices"
	"unsafe"
)

// fakeGraph is a CUDA graph. Each launch runs its nodes in another order that its edges allow.
type fakeGraph struct {
	nodes  []fakeNode
	random *rand.Rand
}

type fakeNode struct {
	handle  handle
	follows []int
	early   bool
	work    func()
}

// run runs the nodes. The next one is always the node with the highest random number among those
// that may begin.
func (g *fakeGraph) run() {
	turn := g.random.Perm(len(g.nodes))
	done := make([]bool, len(g.nodes))
	for range g.nodes {
		next := -1
		for i, n := range g.nodes {
			waits := slices.ContainsFunc(n.follows, func(earlier int) bool { return !done[earlier] })
			if !done[i] && !waits && (next < 0 || turn[i] > turn[next]) {
				next = i
			}
		}
		done[next] = true
		g.nodes[next].work()
	}
}

func (d *fakeDriver) cuGraphCreate(graph *handle, _ uint32) result {
	return d.do("cuGraphCreate", func() result {
		*graph = d.fresh()
		d.graphs[*graph] = &fakeGraph{random: rand.New(rand.NewPCG(uint64(*graph), 0))}
		return success
	})
}

func (d *fakeDriver) cuGraphAddKernelNode(node *handle, graph handle, dependencies *handle, count uint64, parameters *kernelNode) result {
	return d.do("cuGraphAddKernelNode", func() result {
		work, code := d.work(parameters)
		g := d.graphs[graph]
		if g == nil || code != success {
			return invalidValue
		}
		n := fakeNode{handle: d.fresh(), work: work}
		for _, earlier := range unsafe.Slice(dependencies, count) {
			at := slices.IndexFunc(g.nodes, func(n fakeNode) bool { return n.handle == earlier })
			if at < 0 || slices.Contains(n.follows, at) {
				return invalidValue
			}
			n.follows = append(n.follows, at)
		}
		*node = n.handle
		g.nodes = append(g.nodes, n)
		return success
	})
}

func (d *fakeDriver) cuGraphAddDependencies_v2(graph handle, from, to *handle, edges *edgeData, count uint64) result {
	return d.do("cuGraphAddDependencies_v2", func() result {
		g := d.graphs[graph]
		if g == nil || count != 1 || *edges != (edgeData{from: 1, kind: 1}) {
			return invalidValue
		}
		place := func(h handle) int { return slices.IndexFunc(g.nodes, func(n fakeNode) bool { return n.handle == h }) }
		earlier, later := place(*from), place(*to)
		if earlier < 0 || later <= earlier || slices.Contains(g.nodes[later].follows, earlier) {
			return invalidValue
		}
		g.nodes[later].follows = append(g.nodes[later].follows, earlier)
		if g.nodes[later].early {
			return invalidValue
		}
		g.nodes[later].early = true
		d.early++
		return success
	})
}

func (d *fakeDriver) cuGraphInstantiateWithFlags(executable *handle, graph handle, _ uint64) result {
	return d.do("cuGraphInstantiateWithFlags", func() result {
		g, ok := d.graphs[graph]
		if !ok {
			return invalidHandle
		}
		for _, n := range g.nodes {
			d.followers += min(1, len(n.follows))
			if len(n.follows) == 1 {
				others := 0
				for _, o := range g.nodes {
					if slices.Contains(o.follows, n.follows[0]) {
						others++
					}
				}
				if others == 1 {
					d.inLine++
				}
			}
		}
		*executable = d.fresh()
		d.ready[*executable] = &fakeGraph{nodes: slices.Clone(g.nodes), random: g.random}
		return success
	})
}

func (d *fakeDriver) cuGraphLaunch(executable, stream handle) result {
	d.mu.Lock()
	g, ok := d.ready[executable]
	d.mu.Unlock()
	if !ok {
		return invalidHandle
	}
	return d.enqueue("cuGraphLaunch", stream, g.run)
}

func (d *fakeDriver) cuGraphExecDestroy(executable handle) result {
	return d.do("cuGraphExecDestroy", func() result {
		if _, ok := d.ready[executable]; !ok {
			return invalidHandle
		}
		delete(d.ready, executable)
		return success
	})
}

func (d *fakeDriver) cuGraphDestroy(graph handle) result {
	return d.do("cuGraphDestroy", func() result {
		if _, ok := d.graphs[graph]; !ok {
			return invalidHandle
		}
		delete(d.graphs, graph)
		return success
	})
}
