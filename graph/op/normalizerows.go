package op

import (
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
)

// This file has the host kernels of a GroupNorm over vectors, x [B C 1 1], such as the layer
// normalization of a transformer. A group is a row of neighbouring channels with a scale each,
// whereas the general kernels have a coefficient for each plane, here a single element.

// overRows reports whether groups are rows of single elements.
func (n normalization) overRows(m groupLayout) bool { return n.groups > 0 && m.width == 1 }

// eachRow calls f for rows lo to hi with their mean and 1/sqrt(variance + epsilon), the place of
// the row in x, and the row's first channel.
func eachRow[T float32 | float64](n normalization, m groupLayout, x []T, lo, hi int, f func(row, at, channel int, mean, inverse float64)) {
	var means, inverses [groupsPerPass]float64
	for row := lo; row < hi; row += groupsPerPass {
		end := min(row+groupsPerPass, hi)
		moments(x[row*m.channels:end*m.channels], n, means[:end-row], inverses[:end-row])
		for i := row; i < end; i++ {
			f(i, i*m.channels, i%m.groups*m.channels, means[i-row], inverses[i-row])
		}
	}
}

func normalizeRows[T float32 | float64](n normalization, m groupLayout) func(a *tensor.Args, lo, hi int) {
	return func(a *tensor.Args, lo, hi int) {
		y, x, gamma, beta := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1), tensor.Slice[T](a, 2), tensor.Slice[T](a, 3)
		eachRow(n, m, x, lo, hi, func(_, at, channel int, mean, inverse float64) {
			of := func(all []T, from int) []T { return all[from:][:m.channels] }
			kernel.WideAffineRow(of(y, at), of(x, at), of(gamma, channel), of(beta, channel), mean, inverse)
		})
	}
}

// normalizeRowsGradient computes rows lo to hi of the formula of normalizeBackward.
func normalizeRowsGradient[T float32 | float64](n normalization, m groupLayout) func(a *tensor.Args, lo, hi int) {
	return func(a *tensor.Args, lo, hi int) {
		dx, dout, x, gamma := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1), tensor.Slice[T](a, 2), tensor.Slice[T](a, 3)
		eachRow(n, m, x, lo, hi, func(_, at, channel int, mean, inverse float64) {
			from, dy, scale := x[at:][:m.channels], dout[at:][:m.channels], gamma[channel:][:m.channels]
			var total, product float64
			for i, v := range dy {
				dz := float64(v) * float64(scale[i])
				total += dz
				product += float64(dz * (float64(from[i]) - mean))
			}
			size := float64(m.channels)
			shift, slope := inverse*total/size, inverse*inverse*inverse*product/size
			for i, v := range dy {
				dx[at+i] = T(float64(float64(v)*(float64(scale[i])*inverse)) - (float64((float64(from[i])-mean)*slope) + shift))
			}
		})
	}
}

// columnsPerTile is the number of channels whose products are added up together: a few cache lines
// of each row.
const columnsPerTile = 64

// scaleOfRows returns the kernel of normalizeBackwardScale: the first phase computes the moments of
// all rows, the second sums dout z over the images.
func scaleOfRows[T float32 | float64](n normalization, m groupLayout) tensor.HostKernel {
	channels := m.groups * m.channels
	host := tensor.Rows(m.rows, m.channels, func(a *tensor.Args, lo, hi int) {
		moments := tensor.Workspace[float64](a)
		eachRow(n, m, tensor.Slice[T](a, 2), lo, hi, func(row, _, _ int, mean, inverse float64) {
			moments[2*row], moments[2*row+1] = mean, inverse
		})
	})
	host.Workspace = 16 * m.rows
	host.Phases = append(host.Phases, tensor.Phase{Tiles: ceilDiv(channels, columnsPerTile), Run: func(a *tensor.Args, tile int) {
		dgamma, dout, x, moments := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1), tensor.Slice[T](a, 2), tensor.Workspace[float64](a)
		lo, hi := tile*columnsPerTile, min((tile+1)*columnsPerTile, channels)
		var sums [columnsPerTile]float64
		for image := 0; image*channels < len(x); image++ {
			for c := lo; c < hi; c++ {
				at, row := image*channels+c, image*m.groups+c/m.channels
				sums[c-lo] += float64(float64(dout[at]) * ((float64(x[at]) - moments[2*row]) * moments[2*row+1]))
			}
		}
		for c := lo; c < hi; c++ {
			dgamma[c] = T(sums[c-lo])
		}
	}})
	return host
}
