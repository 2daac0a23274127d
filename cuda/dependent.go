package cuda

import "github.com/pollen-ml/pollen/cuda/kernels"

// From compute capability 9.0 on, a call in a CUDA graph may begin before the last of those that it
// follows has ended: its blocks are there and wait (kernels/dependent.go) when that one's end
// reaches them.

// DependentVariable names the environment variable that, if it is "off", has every call begin after
// those that it follows have ended.
const DependentVariable = "POLLEN_CUDA_DEPENDENT"

// oldestDependent is the first CUDA whose graphs have such edges: 12.3.
const oldestDependent = 12030

// edgeData is a CUgraphEdgeData: from which port of one node to which of another, and its kind.
type edgeData struct {
	from, to, kind uint8
	reserved       [5]uint8
}

// early is the edge from a kernel whose blocks have all said that the next may begin. It is the
// last of the edges to a node: of those that a call follows, the one that comes last in the
// sequence.
var early = edgeData{from: 1, kind: 1}

// text is what the driver compiles for a kernel.
func (g *gpu) text(s *source, symbol string) string {
	text := s.head + s.entries[symbol].Body
	if g.dependent {
		return kernels.Dependent(text)
	}
	return text
}
