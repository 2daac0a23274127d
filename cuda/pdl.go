package cuda

import "github.com/pollen-ml/pollen/cuda/kernels"

// Programmatic dependent launch (PDL) hides the time between two kernels of a CUDA graph, from
// compute capability 9.0 on. Without it, the blocks of the second kernel are started after the last
// block of the first has ended and its writes are visible. With it, they are started once every
// block of the first has executed griddepcontrol.launch_dependents, or ended. They do what needs no
// memory, such as computing indices, and then griddepcontrol.wait waits for the first kernel's end.
// It takes three things:
//
//   - The edge between the two nodes is a programmatic one (pdlEdge), which CUDA has from 12.3 on.
//   - The second kernel is compiled from PTX with the wait in it (kernels.Dependent). A kernel may
//     be in a graph both with PDL and without, so it is compiled in up to three variants.
//   - The second node follows only the first, and no other node follows the first
//     (plan.PDLPredecessors; PDLVariable allows more). Blocks that wait occupy multiprocessors that
//     another branch of the graph could use: on an H100, a step of mnist-64-64-256 with one chain
//     takes 100 µs in this way, 106 if all calls begin early, and 102 if none does.

// minPDLDriver is the first CUDA with programmatic edges in graphs: 12.3.
const minPDLDriver = 12030

// pdlEdge is an edge of type CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC from the port
// CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC: the second kernel may begin once all blocks of the first
// have executed griddepcontrol.launch_dependents, or ended.
var pdlEdge = edgeData{from: 1, kind: 1}

// ptx returns the text that the driver compiles. With PDL the kernel waits for the end of the one
// that it follows before its first instruction that needs more than registers and parameters.
func (g *gpu) ptx(s *ptxFile, symbol string, pdl pdlVariant) string {
	text := s.head + s.entries[symbol].Body
	if pdl != noPDL {
		return kernels.Dependent(text, pdl == waitsAndTriggers)
	}
	return text
}
