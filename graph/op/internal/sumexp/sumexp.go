package sumexp

import (
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
)

// Row is a row of numbers z: the largest of them, Exponentials[k] = exp(z[k] - Largest), and their
// Sum. ln sum exp(z) is Largest + ln Sum.
type Row struct {
	Largest, Sum float64
	Exponentials []float64
}

// together is the number of exponentials that are computed at a time, unless rows are longer.
const together = 256

// Kernel returns tensor.Rows for a run that calls Rows, with the private memory that Rows needs.
func Kernel(rows, width int, run func(a *tensor.Args, lo, hi int)) tensor.HostKernel {
	host := tensor.Rows(rows, 32*width, run) // tiles of some 256 exponentials
	host.Private = 8 * max(width, together)
	return host
}

// Rows calls visit for each row of z, which has rows of the given width. A Row is valid until visit
// returns. a are the arguments of a Kernel.
func Rows[T float32 | float64](a *tensor.Args, z []T, width int, visit func(i int, r Row)) {
	scratch := tensor.Private[float64](a)
	block := max(1, together/width) // rows
	for first := 0; first < len(z)/width; first += block {
		some := z[first*width : min((first+block)*width, len(z))]
		e := scratch[:len(some)]
		var largest [together]T
		for i := range len(some) / width {
			row, shifted := some[i*width:][:width], e[i*width:][:width]
			top := row[0]
			for _, v := range row {
				top = max(top, v)
			}
			largest[i] = top
			for k, v := range row {
				shifted[k] = float64(v) - float64(top)
			}
		}
		kernel.WideExp(e)
		for i := range len(some) / width {
			r := Row{Largest: float64(largest[i]), Exponentials: e[i*width:][:width]}
			for _, v := range r.Exponentials {
				r.Sum += v
			}
			visit(first+i, r)
		}
	}
}
