package cuda

import "github.com/pollen-ml/pollen/cuda/kernels"

// From compute capability 9.0 on, a call in a CUDA graph may begin before the one that it follows
// has ended (programmatic dependent launch): its blocks are resident and wait
// (kernels/dependent.go) when that end reaches them. Only calls in line begin early, as
// PDLCalls has it. Waiting blocks occupy the multiprocessors, which other branches of the graph
// would use: on an H100 a step of mnist-64-64-256 with one chain takes 100 us with calls in line
// early, 106 with all calls early, and 102 with none.

// PDLVariable names the environment variable that, set to "off", leaves out programmatic dependent
// launch: every call then begins after those that it follows have ended.
const PDLVariable = "POLLEN_CUDA_PDL"

// minPDLDriver is the first CUDA with programmatic edges in graphs: 12.3.
const minPDLDriver = 12030

// edgeData is a CUgraphEdgeData: the port of the first node, the port of the second, and the edge's
// type.
type edgeData struct {
	from, to, kind uint8
	reserved       [5]uint8
}

// pdlEdge is an edge of type CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC from the port
// CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC: the second kernel may begin once all blocks of the first
// have executed griddepcontrol.launch_dependents, or ended.
var pdlEdge = edgeData{from: 1, kind: 1}

// ptx returns the text that the driver compiles. With pdl the kernel waits for the end of the one
// that it follows before its first instruction that needs more than registers and parameters.
func (g *gpu) ptx(s *ptxFile, symbol string, pdl bool) string {
	text := s.head + s.entries[symbol].Body
	if pdl {
		return kernels.Dependent(text)
	}
	return text
}
