//go:build (amd64 || arm64) && !purego

package kernel

import "math"

// maxPlanesFast pools consecutive planes.
func maxPlanesFast[T Float](p *poolPlan, x, y []T, planes int) bool {
	if p.table == nil || planes == 0 || !useAssembly[T]() {
		return false
	}
	floor := float32(math.Inf(-1))
	if p.ReLU {
		floor = 0
	}
	in, out := p.H*p.W, p.outH*p.outW
	upper, lower, py := addressOf(x, planes*in), addressOf(x[p.W:], planes*in-p.W), addressOf(y, planes*out)
	maxPlanes(upper, lower, py, &p.table[0], len(p.table)/4, planes, in, out, floor)
	return true
}

func maxIndicesFast[T Float](q *Windows2x2, places []uint8, x []T) bool {
	if q.table == nil || len(x) == 0 || !useAssembly[T]() {
		return false
	}
	in := q.height * q.width
	upper, lower := addressOf(x, len(x)), addressOf(x[q.width:], len(x)-q.width)
	notePlaces(upper, lower, &places[0], &q.table[0], len(q.table)/4, len(x)/in, in, in/4)
	return true
}

func unpoolGradFast[T Float](q *Windows2x2, dx, dout []T, places []uint8, mask uint8) bool {
	if q.table == nil || len(dx) == 0 || !useAssembly[T]() {
		return false
	}
	in := q.height * q.width
	upper, lower := addressOf(dx, len(dx)), addressOf(dx[q.width:], len(dx)-q.width)
	spreadPlaces(upper, lower, addressOf(dout, len(dout)), &places[0], &q.table[0], len(q.table)/4, len(dx)/in, in, in/4, uint32(mask))
	return true
}
