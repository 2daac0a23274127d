package plan

import (
	"github.com/pollen-ml/pollen/tensor"
)

// Bytes is what a call reads and writes for one chain, each buffer once. Of what all chains share
// it reads no more than it writes.
func (c Call) Bytes() float64 {
	seen := map[*tensor.Buffer]tensor.Access{}
	for _, a := range c.Arguments {
		if a.Buffer != nil && a.Buffer.Arena != tensor.Shared {
			seen[a.Buffer] |= a.Access
		}
	}
	bytes := 0.0
	for b, access := range seen {
		for _, way := range []tensor.Access{tensor.Read, tensor.Write} {
			if access&way != 0 {
				bytes += float64(b.Bytes())
			}
		}
	}
	return bytes
}

// ElementsWritten is how many elements an update or an elementwise call has: those of the largest
// buffer that it writes, of each row.
func (c Call) ElementsWritten() (all int) {
	rows := [][]tensor.Argument{c.Arguments}
	if c.RowEnds != nil {
		rows = c.Rows()
	}
	for _, row := range rows {
		most := 0
		for _, a := range row {
			if a.Buffer != nil && a.Access&tensor.Write != 0 {
				most = max(most, a.Buffer.Elements)
			}
		}
		all += most
	}
	return all
}
