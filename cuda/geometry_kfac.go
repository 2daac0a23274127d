package cuda

import "github.com/pollen-ml/pollen/tensor"

// kfacSide is one of the sides of a launch of kfac_factors_update: its buffers, and its integers and scale.
type kfacSide struct {
	factor, whitener, data tensor.Argument
	batch, n, width, scale tensor.Argument
	products, row          *tensor.Buffer
}

// The buffers and the attributes of a side, the attributes of all sides, and the side of the tiles in which products are made.
const (
	kfacBuffers    = 3
	kfacIntegers   = 4
	kfacAttributes = 4
	kfacTile       = 32
)

// kfacFactors is launch (means, factor, whitener and data of each side, header, batch, n, width and scale of each side, alpha, damping, refresh,
// freezeAt): each side's products, in parts, and its average; then the whiteners, for which all factors must be there.
func kfacFactors(p *placement, l *tensor.Launch) []call {
	a := l.Arguments
	_, suffix := stemOf(l.Kernel)
	sides := (len(a) - 2 - kfacAttributes) / (kfacBuffers + kfacIntegers)
	header, common := a[1+kfacBuffers*sides], a[len(a)-kfacAttributes:]
	alpha, damping, refresh, freezeAt := common[0], common[1], common[2], common[3]
	all := make([]kfacSide, sides)
	var calls []call
	for i := range all {
		buffers, integers := a[1+kfacBuffers*i:], a[2+kfacBuffers*sides+kfacIntegers*i:]
		s := &all[i]
		s.factor, s.whitener, s.data = buffers[0], buffers[1], buffers[2]
		s.batch, s.n, s.width, s.scale = integers[0], integers[1], integers[2], integers[3]
		n := integer(s.n)
		tiles, terms := ceil(n, kfacTile), integer(s.batch)*integer(s.width)
		parts := max(1, min(ceil(terms, 1024), mostParts, 1024/(tiles*tiles)))
		s.products = p.work(s.factor.Buffer.DType, parts*n*n)
		s.row = p.work(s.factor.Buffer.DType, n)
		calls = append(calls, call{
			symbol: "kfac_products_" + suffix, blocks: [2]int{tiles * tiles, parts}, threads: 256,
			arguments: []tensor.Argument{tensor.Out(s.products), s.data, header, s.batch, s.n, s.width, freezeAt},
		}, call{
			symbol: "kfac_average_" + suffix, blocks: [2]int{ceil(n*n, 256), 1}, threads: 256,
			arguments: []tensor.Argument{s.factor, tensor.In(s.products), header, s.n, tensor.Int(parts), s.scale, alpha, freezeAt},
		})
	}
	for i, s := range all {
		other := all[sides-1-i]
		calls = append(calls, call{
			symbol: "kfac_whiten_" + suffix, blocks: [2]int{1, 1}, threads: wholeWarps(4*integer(s.n), 1024),
			arguments: []tensor.Argument{
				tensor.InOut(a[0].Buffer), s.whitener, tensor.In(s.factor.Buffer), tensor.In(other.factor.Buffer), tensor.InOut(s.row), header,
				tensor.Int(i), tensor.Int(sides), s.n, other.n, damping, refresh, freezeAt,
			},
		})
	}
	return calls
}
