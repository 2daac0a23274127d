package cuda

import "github.com/pollen-ml/pollen/cuda/kernels"

// Programmatic dependent launch (PDL) hides the time between two kernels of a CUDA graph, from
// compute capability 9.0 on. Without it, the blocks of the second kernel are started after the last
// block of the first has ended and its writes are visible. With it, they are started once every
// block of the first has executed griddepcontrol.launch_dependents, or ended. They do the work that
// needs no memory, such as computing indices, and then wait for the first kernel's end at
// griddepcontrol.wait. It takes three things:
//
//   - The edge between the two nodes is a programmatic one (pdlEdge), which CUDA has from 12.3 on.
//   - The second kernel is compiled from PTX with the wait in it (kernels.Dependent). A kernel may
//     be in a graph both with PDL and without, so it is compiled in up to two variants.
//   - The second node follows only the first, no other node follows the first, and no large call
//     may run next to the first (plan.PDLCalls). Blocks that wait occupy multiprocessors that
//     another branch of the graph could use: when calls at forks and joins began early, too, a step
//     of mnist-64-64-256 with one chain took longer than without PDL, even if they began only when
//     the blocks before them had ended.

// minPDLDriver is the first CUDA with programmatic edges in graphs: 12.3.
const minPDLDriver = 12030

// pdlEdge is an edge of type CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC from the port
// CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC: the second kernel may begin once all blocks of the first
// have executed griddepcontrol.launch_dependents, or ended.
var pdlEdge = edgeData{from: 1, kind: 1}

// ptx returns the text that the driver compiles. With pdl, the kernel waits for the end of the
// preceding kernel before its first instruction that needs more than registers and parameters.
func (s *ptxFile) ptx(symbol string, pdl bool) string {
	text := s.head + s.entries[symbol].Body
	if pdl {
		return kernels.Dependent(text)
	}
	return text
}
