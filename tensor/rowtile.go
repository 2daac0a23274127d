package tensor

import (
	"math"
	"slices"
	"sort"
)

// RowTile declares that one phase of a host kernel processes rows independently, so that
// consecutive launches can be fused and run a few rows at a time, while the data are in cache. For
// a convolution followed by a ReLU and a pooling over a batch of 100 images, a row is an image: the
// three launches process images 0 to 3, then 4 to 7, and so on.
//
// The contract is:
//
//   - Phase computes rows. Row i of Rows touches only its own 1/Rows of each buffer that the launch
//     owns, and only reads other buffers.
//   - Phases before it (the prologue) read only buffers that the launch does not own and write
//     only the workspace. They run once, before the first tile; an example is packing a filter.
//   - Phases after it (the epilogue) read only the workspace, which is divided equally among the
//     rows or parts, and write the launch's first argument. They run once, after the last tile; an
//     example is adding up a filter's gradient.
//
// The zero RowTile declares nothing, and the launch runs unfused.
type RowTile struct {
	Phase      int
	Rows, Unit int   // rows of each owned buffer; a tile is a multiple of Unit rows, except the last
	Parts      []int // if rows are summed: the first row of each partial sum, and Rows at the end
	Owns       func(argument int, b *Buffer) bool
	// Run processes rows; a holds only these. add is set if an earlier tile began the part's sum.
	Run func(a *Args, rows int, add bool)

	aligned bool // whether a tile must start at a multiple of Unit
}

// Handle processes rows [lo, hi). Tiles of one part must be handled in order and on one thread.
func (s *RowTile) Handle(a *Args, lo, hi int) {
	a.rowTile, a.lo, a.hi = s, lo, hi
	add := false
	if s.Parts != nil {
		a.part = sort.SearchInts(s.Parts, lo+1) - 1
		add = s.Parts[a.part] < lo
	}
	s.Run(a, hi-lo, add)
	a.rowTile = nil
}

// RowTiles is like Rows, for a kernel that touches only its own rows of each buffer of rows*width
// elements. A tile starts at a multiple of unit. For a kernel over the planes [B*C, H*W] of a batch
// that uses a coefficient per channel, unit is C: row i of a tile then belongs to channel i modulo
// C.
func RowTiles(rows, unit, width int, run func(a *Args, lo, hi int)) HostKernel {
	h := Rows(rows, width, run)
	h.RowTile = RowTile{
		Rows: rows, Unit: unit, aligned: true,
		Owns: func(_ int, b *Buffer) bool { return b.Elements == rows*width },
		Run:  func(a *Args, rows int, _ bool) { run(a, 0, rows) },
	}
	return h
}

const (
	// tileBytes is the size of a tile, in bytes of one launch's buffers, where there is a choice;
	// launches whose tiles would exceed maxTileBytes are not fused. A tile should stay in cache.
	tileBytes    = 128 << 10
	maxTileBytes = 4 << 20
	// cacheBytes of a worker's data stay in its cache whether or not launches are fused.
	cacheBytes = 2 << 20
	// maxImbalance bounds the busiest worker's rows, relative to an even distribution.
	maxImbalance = 1.15
	// maxSharedBytes bounds the data, such as filters, of several launches that every tile reads.
	maxSharedBytes = 512 << 10
)

// fusedStage is launches [from, to). If it has tiles, the launches are fused: all of them process
// the first tile of rows, then the next, and so on. The output of one launch is then still in the
// thread's cache when the next one reads it. A buffer that no launch outside the stage reads is not
// written to its arena at all; it lives in memory of the worker that every tile reuses.
//
// Launches may have different numbers of rows, such as images for a convolution and planes for the
// pooling after it. Tiles count common rows, whose number is the greatest common divisor of the
// launches' rows: launch from+i processes ratios[i] of its own rows for each of them. With 100
// images of 20 channels, the convolution has ratio 1 and the pooling 20.
type fusedStage struct {
	from, to     int
	tiles        []int   // the first common row of each, and the end; none if the launches are not fused
	items        []int   // the first tile of each item, and the end; one worker runs an item's tiles in order
	ratios       []int   // each launch's own rows per common row
	blocks       []int   // the planes that a launch computes before the next one reads them; 0 if they do not alternate
	localOffsets [][]int // of each launch's arguments in the worker's memory; -1 if in an arena
	localBytes   int     // size of that memory
}

// fuseLaunches divides a workload into stages. It is greedy: a stage grows as long as its launches
// can be fused and leave enough tiles for the workers.
func fuseLaunches(launches []Launch, workers int) (stages []fusedStage) {
	lifetimes := lifetimesOf(launches)
	for from := 0; from < len(launches); {
		s := fusedStage{from: from, to: from + 1}
		for s.to < len(launches) {
			longer := fusedStage{from: from, to: s.to + 1}
			longer.findBlocks(launches, lifetimes)
			if !longer.canFuse(launches[from:s.to+1]) || !longer.chooseTiles(launches[from:s.to+1], workers) {
				break
			}
			s = longer
		}
		stages = append(stages, s)
		from = s.to
	}
	placeLocalBuffers(launches, stages, lifetimes)
	return stages
}

// canFuse reports whether the last launch of a group computes the same if it is fused with the
// launches before it.
func (s *fusedStage) canFuse(group []Launch) bool {
	before, next := group[:len(group)-1], &group[len(group)-1]
	if next.Host.RowTile.Rows == 0 || group[0].Host.RowTile.Rows == 0 {
		return false
	}
	for i := range before {
		if !before[i].fusesWith(next, s.between(i, group)) {
			return false
		}
	}
	return true
}

// fusesWith reports whether l and the later launch next may alternate tile by tile: each tile of
// next must find what l wrote for it, and must not overwrite what l's later tiles still read. Where
// the two share memory and one of them writes it, both must therefore own it and view it as the
// same range of bytes. Memory of the buffer between, if any, is not used.
func (l *Launch) fusesWith(next *Launch, between *Buffer) bool {
	for i, x := range l.Arguments {
		for j, y := range next.Arguments {
			if x.Buffer == nil || x.Buffer == between || y.Buffer == nil || (x.Access|y.Access)&Write == 0 || !x.Buffer.Overlaps(y.Buffer) {
				continue
			}
			if j == 0 && next.Host.hasEpilogue() {
				continue // written after all tiles
			}
			if i == 0 && l.Host.hasEpilogue() || !l.owns(i) || !next.owns(j) ||
				x.Buffer.Offset != y.Buffer.Offset || x.Buffer.Bytes() != y.Buffer.Bytes() {
				return false
			}
		}
	}
	return true
}

// epilogue returns the phases after the one that processes rows.
func (h *HostKernel) epilogue() []Phase { return h.Phases[h.RowTile.Phase+1:] }

// hasEpilogue reports whether phases follow the one that processes rows.
func (h *HostKernel) hasEpilogue() bool { return len(h.Phases) > h.RowTile.Phase+1 }

func (l *Launch) owns(argument int) bool {
	return l.Host.RowTile.Owns(argument, l.Arguments[argument].Buffer)
}

// tileLimits is what the launches of a stage allow its tiles to be, in common rows.
type tileLimits struct {
	rows      int   // the number of common rows
	unit      int   // a tile is a multiple of unit rows, except the last
	alignment int   // a tile must start at a multiple of alignment
	parts     []int // see RowTile
	tiles     int   // the most tiles that a launch has unfused

	owned, perRow         int // the most bytes that a launch owns, and needs in memory for each row
	shared, largestShared int // bytes that every tile reads, of all launches and of one
}

// limits sets the ratios of a stage's launches and returns the limits of its tiles, or false if the
// launches sum different parts.
func (s *fusedStage) limits(group []Launch) (t tileLimits, ok bool) {
	t.unit, t.alignment = 1, 1
	for i := range group {
		t.rows = gcd(t.rows, group[i].Host.RowTile.Rows)
	}
	for i := range group {
		rowTile := &group[i].Host.RowTile
		ratio := rowTile.Rows / t.rows
		s.ratios = append(s.ratios, ratio)
		whole := rowTile.Unit / gcd(rowTile.Unit, ratio)
		t.unit *= whole / gcd(t.unit, whole)
		if rowTile.aligned {
			t.alignment *= whole / gcd(t.alignment, whole)
		}
		owned, others := group[i].footprint()
		t.owned, t.shared, t.largestShared = max(t.owned, owned), t.shared+others, max(t.largestShared, others)
		if between := s.between(i, group); between != nil {
			owned -= between.Bytes() // never in memory as a whole
		}
		t.perRow = max(t.perRow, owned/t.rows)
		t.tiles = max(t.tiles, group[i].Host.Phases[rowTile.Phase].Tiles)
		if rowTile.Parts != nil {
			if ratio != 1 || t.parts != nil && !slices.Equal(t.parts, rowTile.Parts) {
				return t, false
			}
			t.parts = rowTile.Parts
		}
	}
	return t, true
}

// chooseTiles chooses the tiles of launches that may be fused. It returns false if fusing would not
// pay: the tile or the shared data would not fit in cache, or there would be too few tiles for the
// workers.
func (s *fusedStage) chooseTiles(group []Launch, workers int) bool {
	t, ok := s.limits(group)
	if !ok {
		return false
	}
	// Data that every tile reads, such as filters, must stay in cache next to the tile. One launch
	// with large filters is fine, since it would read them anyway; several are not.
	if t.perRow*t.unit > maxTileBytes || t.shared > max(maxSharedBytes, t.largestShared+maxSharedBytes/8) {
		return false
	}
	blocked := slices.Index(s.blocks, slices.Max(s.blocks))
	alternate := s.blocks[blocked] > 0
	if alternate && (t.parts != nil || t.unit > 1 || s.ratios[blocked] > 1) {
		return false // a tile is not an image
	}
	largest := tileBytes / max(1, t.perRow)
	if t.parts != nil {
		return s.tileParts(t.parts, t.unit, t.alignment, largest, workers)
	}
	minTiles := 4 * workers
	if t.owned < cacheBytes*workers {
		minTiles = 16 * workers // all data stay in cache anyway, so balance matters more
	}
	minTiles = min(minTiles, t.tiles)
	if (t.rows+t.unit-1)/t.unit < minTiles {
		return false
	}
	largest = min(largest, t.rows/max(1, minTiles))
	if alternate {
		largest = 1
	}
	s.appendTiles(0, t.rows, evenTile(t.rows, t.unit, largest, workers))
	s.tiles = append(s.tiles, t.rows)
	for n := range s.tiles {
		s.items = append(s.items, n)
	}
	return true
}

// blockBytes is the size of the planes that a launch computes before the next one reads them, and
// the minimum size of an image for which two launches alternate.
const blockBytes = 512 << 10

// alternating returns how many planes launch i computes before launch i+1 reads them, or 0 if
// they do not alternate.
func alternating(launches []Launch, i int, lifetimes map[*Buffer]lifetime) (planes int) {
	if i+1 >= len(launches) {
		return 0
	}
	l, next := &launches[i], &launches[i+1]
	p, q := &l.Host.Planes, &next.Host.Planes
	rows := l.Host.RowTile.Rows
	if p.Count == 0 || p.Count != q.Count || q.Input == 0 || rows == 0 || rows != next.Host.RowTile.Rows {
		return 0
	}
	between, out := l.Arguments[0].Buffer, next.Arguments[0].Buffer
	bytes := between.Bytes() / rows
	if next.Arguments[q.Input].Buffer != between || between.Arena != Scratch || lifetimes[between] != (lifetime{i, i + 1, true}) || bytes < blockBytes {
		return 0
	}
	for _, a := range l.Arguments {
		if a.Buffer != nil && a.Buffer.Overlaps(out) {
			return 0 // the first launch would still read it after the second one has begun to write
		}
	}
	blocks := (bytes + blockBytes - 1) / blockBytes
	return (p.Count + blocks - 1) / blocks
}

// findBlocks finds the launches of a stage that alternate.
func (s *fusedStage) findBlocks(launches []Launch, lifetimes map[*Buffer]lifetime) {
	s.blocks = make([]int, s.to-s.from)
	for i := s.from; i < s.to-1; i++ {
		if s.blocks[i-s.from] = alternating(launches, i, lifetimes); s.blocks[i-s.from] > 0 {
			i++
		}
	}
}

// between returns the buffer between launch i of a group and a launch with which it alternates, or
// nil.
func (s *fusedStage) between(i int, group []Launch) *Buffer {
	if i > 0 && s.blocks[i-1] > 0 {
		i--
	} else if s.blocks[i] == 0 {
		return nil
	}
	return group[i].Arguments[0].Buffer
}

// appendTiles divides rows [lo, hi) into tiles.
func (s *fusedStage) appendTiles(lo, hi, tile int) {
	for ; lo < hi; lo += tile {
		s.tiles = append(s.tiles, lo)
	}
}

// tileParts makes an item of each part, since a part's rows are summed in order by one worker. It
// returns false if the workers would be too unevenly loaded or if a part does not start at a
// multiple of alignment.
func (s *fusedStage) tileParts(parts []int, unit, alignment, largest, workers int) bool {
	busiest, rows := 0, parts[len(parts)-1]
	for n, lo := range parts[:len(parts)-1] {
		hi := parts[n+1]
		if lo%alignment != 0 {
			return false
		}
		s.items = append(s.items, len(s.tiles))
		s.appendTiles(lo, hi, evenTile(hi-lo, unit, largest, 1))
		busiest = max(busiest, hi-lo)
	}
	s.items, s.tiles = append(s.items, len(s.tiles)), append(s.tiles, rows)
	items := len(parts) - 1
	return float64((items+workers-1)/workers*busiest*workers) <= maxImbalance*float64(rows)
}

// evenTile returns the rows of a tile: the multiple of unit up to largest for which the busiest
// worker has the fewest rows, preferring larger tiles, or unit if that exceeds largest.
func evenTile(rows, unit, largest, workers int) (tile int) {
	busiest := math.MaxInt
	for size := unit; size == unit || size <= largest; size += unit {
		n := (rows + size - 1) / size
		if work := min(rows, (n+workers-1)/workers*size); work <= busiest {
			tile, busiest = size, work
		}
	}
	return tile
}

// footprint returns the size of the buffers that a launch owns, and of the data that all of its
// tiles read.
func (l *Launch) footprint() (own, others int) {
	for i, a := range l.Arguments {
		switch {
		case a.Buffer == nil || i == 0 && l.Host.hasEpilogue():
		case l.owns(i):
			own += a.Buffer.Bytes()
		default:
			others += a.Buffer.Bytes()
		}
	}
	if l.Host.RowTile.Phase > 0 {
		others += l.Host.Workspace
	}
	return own, others
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
