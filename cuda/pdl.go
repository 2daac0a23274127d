package cuda

import "github.com/pollen-ml/pollen/cuda/kernels"

// From compute capability 9.0 on, a call in a CUDA graph may begin before the one that it follows
// has ended (programmatic dependent launch): its blocks are resident and wait
// (kernels/dependent.go) when that end reaches them. Only calls in line begin early, as
// PDLCalls has it. Waiting blocks occupy the multiprocessors, which other branches of the graph
// would use: on an H100 a step of mnist-64-64-256 with one chain takes 100 us with calls in line
// early, 106 with all calls early, and 102 with none.

// PDLVariable names the environment variable that, if it is "off", has every call begin after
// those that it follows have ended.
const PDLVariable = "POLLEN_CUDA_DEPENDENT"

// minPDLDriver is the first CUDA whose graphs have such edges: 12.3.
const minPDLDriver = 12030

// edgeData is a CUgraphEdgeData: from which port of one node to which of another, and its kind.
type edgeData struct {
	from, to, kind uint8
	reserved       [5]uint8
}

// pdlEdge is the edge from a kernel all of whose blocks have let the next kernel begin.
var pdlEdge = edgeData{from: 1, kind: 1}

// text returns the PTX that the driver compiles for a kernel: one that begins early waits by
// itself.
func (g *gpu) ptx(s *ptxFile, symbol string, early bool) string {
	text := s.head + s.entries[symbol].Body
	if early {
		return kernels.Dependent(text)
	}
	return text
}
