package main

import (
	"image"
	"image/draw"
	"math"

	"github.com/pkg/errors"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

// Geometry of a cell of letters.png: the bounding box of a letter's ink is stretched to inkSide x inkSide
// pixels, with margin pixels around it.
const (
	inkSide  = 56
	margin   = 4
	cellSide = inkSide + 2*margin

	// A pixel's byte is distanceZero + distanceUnit*d, clamped, where d is the signed distance in
	// pixels from its centre to the letter's outline, positive inside.
	distanceZero = 128
	distanceUnit = 16

	oversampling = 8 // each pixel is oversampling x oversampling points
	fineSide     = cellSide * oversampling
)

// renderLetter returns the cell of one letter, row by row.
func renderLetter(font *sfnt.Font, letter rune) ([]byte, error) {
	var buffer sfnt.Buffer
	index, err := font.GlyphIndex(&buffer, letter)
	if err != nil {
		return nil, errors.Wrapf(err, "glyph of %q", letter)
	}
	if index == 0 {
		return nil, errors.Errorf("the font must have a glyph for %q", letter)
	}
	const unitsPerEm = 2048
	segments, err := font.LoadGlyph(&buffer, index, fixed.I(unitsPerEm), nil)
	if err != nil {
		return nil, errors.Wrapf(err, "outline of %q", letter)
	}
	return distanceCell(fill(segments)), nil
}

// fill rasterises an outline, stretched so that its bounding box is the inner square of the cell, and
// reports for each fine point whether it is ink.
func fill(segments sfnt.Segments) []bool {
	box := inkBox(segments)
	const inner = inkSide * oversampling
	return rasterise(segments, func(p fixed.Point26_6) (x, y float32) {
		x = margin*oversampling + inner*(float32(p.X)-box[0])/(box[2]-box[0])
		y = margin*oversampling + inner*(float32(p.Y)-box[1])/(box[3]-box[1])
		return x, y
	})
}

// inkBox returns the bounding box (minimum x and y, maximum x and y) of an outline. It evaluates each curve
// at many points, since control points may lie outside the ink.
func inkBox(segments sfnt.Segments) [4]float32 {
	box := [4]float32{math.MaxFloat32, math.MaxFloat32, -math.MaxFloat32, -math.MaxFloat32}
	var last fixed.Point26_6
	for _, segment := range segments {
		points := append([]fixed.Point26_6{last}, segment.Args[:arguments(segment.Op)]...)
		if segment.Op == sfnt.SegmentOpMoveTo {
			points = points[1:]
		}
		const steps = 64
		for i := range steps + 1 {
			x, y := bezier(points, float32(i)/steps)
			box[0], box[1] = min(box[0], x), min(box[1], y)
			box[2], box[3] = max(box[2], x), max(box[3], y)
		}
		last = points[len(points)-1]
	}
	return box
}

// arguments returns the number of points of an outline's segment.
func arguments(op sfnt.SegmentOp) int {
	switch op {
	case sfnt.SegmentOpQuadTo:
		return 2
	case sfnt.SegmentOpCubeTo:
		return 3
	default:
		return 1
	}
}

// bezier evaluates the Bezier curve with the given control points at t in [0, 1] by de Casteljau's
// algorithm.
func bezier(points []fixed.Point26_6, t float32) (x, y float32) {
	var px, py [4]float32
	for i, p := range points {
		px[i], py[i] = float32(p.X), float32(p.Y)
	}
	for n := len(points) - 1; n > 0; n-- {
		for i := range n {
			px[i] += t * (px[i+1] - px[i])
			py[i] += t * (py[i+1] - py[i])
		}
	}
	return px[0], py[0]
}

// rasterise fills an outline, after placing its points on the fine grid.
func rasterise(segments sfnt.Segments, place func(fixed.Point26_6) (x, y float32)) []bool {
	rasteriser := vector.NewRasterizer(fineSide, fineSide)
	for _, segment := range segments {
		var p [6]float32
		for i := range arguments(segment.Op) {
			p[2*i], p[2*i+1] = place(segment.Args[i])
		}
		switch segment.Op {
		case sfnt.SegmentOpMoveTo:
			rasteriser.ClosePath()
			rasteriser.MoveTo(p[0], p[1])
		case sfnt.SegmentOpLineTo:
			rasteriser.LineTo(p[0], p[1])
		case sfnt.SegmentOpQuadTo:
			rasteriser.QuadTo(p[0], p[1], p[2], p[3])
		case sfnt.SegmentOpCubeTo:
			rasteriser.CubeTo(p[0], p[1], p[2], p[3], p[4], p[5])
		}
	}
	rasteriser.ClosePath()
	mask := image.NewAlpha(image.Rect(0, 0, fineSide, fineSide))
	rasteriser.DrawOp = draw.Src
	rasteriser.Draw(mask, mask.Bounds(), image.Opaque, image.Point{})
	ink := make([]bool, len(mask.Pix))
	for i, coverage := range mask.Pix {
		ink[i] = coverage >= 128
	}
	return ink
}

// distanceCell converts the fine mask to the cell's bytes.
func distanceCell(ink []bool) []byte {
	inside := squaredDistances(ink, false)
	outside := squaredDistances(ink, true)
	signed := func(i int) float64 {
		// The outline lies half a point from the nearest point's centre.
		if ink[i] {
			return math.Sqrt(inside[i]) - 0.5
		}
		return 0.5 - math.Sqrt(outside[i])
	}
	cell := make([]byte, 0, cellSide*cellSide)
	for y := range cellSide {
		for x := range cellSide {
			// A pixel's centre is the corner between four fine points.
			i := (y*oversampling+oversampling/2-1)*fineSide + x*oversampling + oversampling/2 - 1
			d := (signed(i) + signed(i+1) + signed(i+fineSide) + signed(i+fineSide+1)) / 4
			value := distanceZero + math.Round(d*distanceUnit/oversampling)
			cell = append(cell, byte(min(max(value, 0), 255)))
		}
	}
	return cell
}

// squaredDistances returns the squared Euclidean distance of fine points to the nearest point whose ink is
// target, or a large number if there is none: first along columns, then along rows by lower envelopes of
// parabolas (Felzenszwalb and Huttenlocher 2012). Rows that have no corner of distanceCell stay 0.
func squaredDistances(ink []bool, target bool) []float64 {
	const far = 4 * fineSide * fineSide
	columns := columnDistances(ink, target)
	distances := make([]float64, len(ink))
	line, envelope := make([]float64, fineSide), new(lowerEnvelope)
	for y := oversampling/2 - 1; y < fineSide; y += oversampling {
		for row := y; row < y+2; row++ {
			for x, d := range columns[row*fineSide : (row+1)*fineSide] {
				line[x] = min(float64(d)*float64(d), far)
			}
			envelope.minima(line, distances[row*fineSide:(row+1)*fineSide])
		}
	}
	return distances
}

// columnDistances returns for each fine point how far the nearest point of its column is whose ink is target,
// or at least 2*fineSide if there is none.
func columnDistances(ink []bool, target bool) []int32 {
	distances := make([]int32, len(ink))
	for i, v := range ink {
		switch {
		case v == target:
		case i < fineSide:
			distances[i] = 2 * fineSide
		default:
			distances[i] = distances[i-fineSide] + 1
		}
	}
	for i := len(ink) - fineSide - 1; i >= 0; i-- {
		distances[i] = min(distances[i], distances[i+fineSide]+1)
	}
	return distances
}

// lowerEnvelope is scratch space for parabolas, each with where it becomes the lowest.
type lowerEnvelope struct {
	vertices [fineSide]int
	starts   [fineSide]float64
}

// minima sets result[q] to the minimum over p of (q-p)^2 + f[p].
func (e *lowerEnvelope) minima(f, result []float64) {
	n := 0
	for q := range f {
		start := math.Inf(-1)
		for n > 0 {
			p := e.vertices[n-1]
			start = ((f[q] + float64(q*q)) - (f[p] + float64(p*p))) / float64(2*(q-p))
			if start > e.starts[n-1] {
				break
			}
			n--
			start = math.Inf(-1)
		}
		e.vertices[n], e.starts[n] = q, start
		n++
	}
	k := 0
	for q := range result {
		for k+1 < n && e.starts[k+1] < float64(q) {
			k++
		}
		p := e.vertices[k]
		result[q] = float64((q-p)*(q-p)) + f[p]
	}
}
