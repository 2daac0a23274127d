package emulator

import (
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/pollen-ml/pollen/cuda/kernels"
)

// kernelNode is a CUDA_KERNEL_NODE_PARAMS_v1.
type kernelNode struct {
	function    uintptr
	grid, block [3]uint32
	shared      uint32
	parameters  *unsafe.Pointer
	extra       unsafe.Pointer
}

// copies is a graph whose nodes are ReLUs of one number, from one element of an array to another.
type copies struct {
	*caller
	driver                              *Driver
	stream, function, graph, executable uintptr
	memory                              uint64
	host                                *[copyPlaces]float32
	kept                                []any // values whose addresses the driver has
}

const copyPlaces = 9

func newCopies(t *testing.T, dependent bool) *copies {
	t.Helper()
	caller, driver := newCaller(t, Options{})
	g := &copies{caller: caller, driver: driver}
	g.begin()
	g.stream = g.value(1)
	file := committed(t, "relu.ptx")
	if dependent {
		file = []byte(kernels.Dependent(string(file)))
	}
	g.gives(0, "cuModuleLoadDataEx", g.result(2), at(g, &append(file, 0)[0]), 0, 0, 0)
	g.gives(0, "cuModuleGetFunction", g.result(3), g.value(2), at(g, &[]byte("relu_fwd_f32\x00")[0]))
	g.function = g.value(3)
	g.gives(0, "cuMemAlloc_v2", g.result(4), 4*copyPlaces)
	g.memory = uint64(g.value(4))
	g.gives(0, "cuMemAllocHost_v2", g.result(5), 4*copyPlaces)
	g.host = (*[copyPlaces]float32)(*(*unsafe.Pointer)(unsafe.Pointer(&g.out[5])))
	g.gives(0, "cuGraphCreate", g.result(6), 0)
	g.graph = g.value(6)
	return g
}

// at returns the address of v, which does not move.
func at[T any](g *copies, v *T) uintptr {
	g.kept = append(g.kept, v)
	return uintptr(unsafe.Pointer(v))
}

// node returns the node that copies one element to another.
func (g *copies) node(from, to int) *kernelNode {
	values := &[5]uint64{g.memory + 4*uint64(to), 0, g.memory + 4*uint64(from), 0, 1}
	pointers := &[3]unsafe.Pointer{unsafe.Pointer(&values[0]), unsafe.Pointer(&values[2]), unsafe.Pointer(&values[4])}
	return &kernelNode{function: g.function, grid: [3]uint32{1, 1, 1}, block: [3]uint32{32, 1, 1}, parameters: &pointers[0]}
}

// add adds a node and returns its handle; the driver must answer with want.
func (g *copies) add(want int, n *kernelNode, follows ...uint64) uint64 {
	g.t.Helper()
	made, first := new(uint64), uintptr(0)
	if len(follows) > 0 {
		first = at(g, &follows[0])
	}
	g.gives(want, "cuGraphAddKernelNode", at(g, made), g.graph, first, uintptr(len(follows)), at(g, n))
	return *made
}

func (g *copies) instantiate() {
	g.t.Helper()
	g.gives(0, "cuGraphInstantiateWithFlags", g.result(7), g.graph, 0)
	g.executable = g.value(7)
}

// run launches the graph on the host memory's contents.
func (g *copies) run() {
	g.t.Helper()
	g.gives(0, "cuMemcpyHtoDAsync_v2", uintptr(g.memory), g.value(5), 4*copyPlaces, g.stream)
	g.gives(0, "cuGraphLaunch", g.executable, g.stream)
	g.gives(0, "cuMemcpyDtoHAsync_v2", g.value(5), uintptr(g.memory), 4*copyPlaces, g.stream)
	g.gives(0, "cuStreamSynchronize", g.stream)
}

func (g *copies) end() {
	g.t.Helper()
	g.gives(0, "cuGraphDestroy", g.graph)
	g.gives(1, "cuGraphDestroy", g.graph)
	g.gives(0, "cuGraphExecDestroy", g.executable)
	g.gives(0, "cuMemFreeHost", g.value(5))
	g.gives(0, "cuMemFree_v2", uintptr(g.memory))
	g.gives(0, "cuModuleUnload", g.value(2))
	g.caller.end()
}

// TestGraphs makes a graph that is a line: each node copies the result of the one before it.
// Invalid nodes and edges must be refused.
func TestGraphs(t *testing.T) {
	g := newCopies(t, false)
	g.gives(1, "cuGraphCreate", g.result(7), 1)
	for _, spoil := range []func(n *kernelNode){
		func(n *kernelNode) { n.grid[1] = 0 }, func(n *kernelNode) { n.block[0] = 257 }, func(n *kernelNode) { n.shared = 49 << 10 },
		func(n *kernelNode) { n.parameters = nil }, func(n *kernelNode) { n.extra = unsafe.Pointer(n.parameters) },
	} {
		n := g.node(0, 1)
		spoil(n)
		g.add(1, n)
	}
	unknown := g.node(0, 1)
	unknown.function = 12345
	g.add(400, unknown)
	g.add(1, g.node(0, 1), 12345)
	last := g.add(0, g.node(0, 1))
	g.add(1, g.node(1, 2), last, last)
	for i := 1; i < copyPlaces-1; i++ {
		last = g.add(0, g.node(i, i+1), last)
	}
	g.instantiate()
	for round := range 8 {
		*g.host = [copyPlaces]float32{float32(round)}
		g.run()
		if got := g.host[copyPlaces-1]; got != float32(round) {
			t.Errorf("the end of the line has %v, want %d", got, round)
		}
	}
	g.end()
}

// TestGraphsTakeAnyOrder: of two nodes without an edge between them, either may be last. Another
// process uses the same orders.
func TestGraphsTakeAnyOrder(t *testing.T) {
	orders := func() (last []float32) {
		g := newCopies(t, false)
		g.add(0, g.node(0, 2))
		g.add(0, g.node(1, 2))
		g.instantiate()
		for range 16 {
			*g.host = [copyPlaces]float32{1, 2}
			g.run()
			last = append(last, g.host[2])
		}
		g.end()
		return last
	}
	first := orders()
	if !slices.Contains(first, 1) || !slices.Contains(first, 2) {
		t.Errorf("two nodes without an edge between them come in the same order always: the last ones wrote %v", first)
	}
	if second := orders(); !slices.Equal(second, first) {
		t.Errorf("the last ones wrote %v, and after a reset %v", first, second)
	}
}

// edge is a CUgraphEdgeData.
type edge struct {
	from, to, kind uint8
	reserved       [5]uint8
}

// link adds an edge; the driver must answer with want.
func (g *copies) link(want int, from, to uint64, e edge) {
	g.t.Helper()
	g.gives(want, "cuGraphAddDependencies_v2", g.graph, at(g, &from), at(g, &to), at(g, &e), 1)
}

// TestEarlyEdges makes a line of nodes each of which may begin early. The driver must refuse
// impossible edges, and report a kernel that begins early and does not wait.
func TestEarlyEdges(t *testing.T) {
	for _, dependent := range []bool{true, false} {
		g := newCopies(t, dependent)
		early := edge{from: 1, kind: 1}
		nodes := []uint64{g.add(0, g.node(0, 1))}
		for i := 1; i < copyPlaces-1; i++ {
			nodes = append(nodes, g.add(0, g.node(i, i+1)))
			g.link(0, nodes[i-1], nodes[i], early)
		}
		for _, wrong := range []edge{{from: 1}, {kind: 1}, {from: 2, kind: 2}, {from: 1, to: 1, kind: 1}, {from: 1, kind: 1, reserved: [5]uint8{1}}} {
			g.link(1, nodes[0], nodes[2], wrong)
		}
		g.link(1, nodes[1], nodes[2], early) // there is such an edge already
		g.link(1, nodes[2], nodes[0], early) // a cycle
		g.link(1, nodes[0], 12345, early)
		g.link(0, nodes[0], nodes[2], edge{})
		g.instantiate()
		*g.host = [copyPlaces]float32{3}
		if dependent {
			g.run()
			if got := g.host[copyPlaces-1]; got != 3 {
				t.Errorf("the end of the line has %v, want 3", got)
			}
			g.end()
			continue
		}
		g.gives(0, "cuMemcpyHtoDAsync_v2", uintptr(g.memory), g.value(5), 4*copyPlaces, g.stream)
		g.gives(0, "cuGraphLaunch", g.executable, g.stream)
		g.gives(719, "cuStreamSynchronize", g.stream)
		if report := g.driver.Report(); !strings.Contains(report, "relu_fwd_f32 begins before the launch that it follows has ended, and never waits for it") {
			t.Errorf("the driver reports %s", report)
		}
		g.driver.Reset(Options{})
	}
}
