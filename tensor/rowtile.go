package tensor

import (
	"math"
	"slices"
	"sort"
)

// RowTile is what a host kernel may say of one of its phases: that it handles rows which do not
// know of one another. Of the buffers that the launch owns, a row's share is the row's alone;
// others the phase only reads. Phases before it read others alone, and write the workspace; those
// after it read the workspace alone, an equal share of which is each row's, or each part's, and
// write the launch's first argument. The zero Strip says nothing.
type RowTile struct {
	Phase      int
	Rows, Unit int   // of each buffer that is owned; how many are handled together
	Parts      []int // if rows are added up in turn: the first of each sum, and the end
	Owns       func(argument int, b *Buffer) bool
	Run        func(a *Args, rows int, add bool) // a has these rows alone; add to a part's rows before

	aligned bool // rows count modulo Unit: a strip begins with one of its multiples
}

// Handle runs rows [lo, hi). Those of a part follow one another.
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

// RowTiles is Rows for a kernel that touches, of its buffers of rows times width elements, only its
// rows, and for which they count modulo unit: a strip's begin with 0.
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
	// footprint is what a strip's share of a launch's buffers takes where there is a choice, and
	// maxTileBytes the most for which launches are run together: it should stay in the cache.
	tileBytes    = 128 << 10
	maxTileBytes = 2 << 20
	// cacheBytes is what a worker finds in its cache again in any case.
	cacheBytes = 2 << 20
	// maxImbalance is how much more than its share of the rows a worker may have.
	maxImbalance = 1.15
	// maxSharedBytes are the filters and the like of several launches, which each strip reads.
	maxSharedBytes = 512 << 10
)

// stage is launches [from, to). Several that keep to strips are run together: the first rows of
// all of them, then the next ones, and so on, rows[i] at a time of launch from+i. What one leaves
// to the next is then still in the thread's cache, and not read from memory again. What no other
// launch needs is not even written there: it lies in memory of the worker's, which every strip uses
// again.
type fusedStage struct {
	from, to     int
	tiles        []int   // where each begins, and the end, in the greatest rows that all launches have
	items        []int   // the strips with which a worker begins, and the end; it goes on to the next item
	ratios       []int   // how many of its own a launch has of such a row
	localOffsets [][]int // of each launch's arguments in the worker's memory: -1 of those in arenas
	localBytes   int     // bytes of that memory
}

// fuseLaunches cuts a schedule into stages, as long as they can be with some strips for each worker.
func fuseLaunches(launches []Launch, workers int) (stages []fusedStage) {
	for from := 0; from < len(launches); {
		s := fusedStage{from: from, to: from + 1}
		for s.to < len(launches) && canFuse(launches[from:s.to], &launches[s.to]) {
			longer := fusedStage{from: from, to: s.to + 1}
			if !longer.chooseTiles(launches[from:s.to+1], workers) {
				break
			}
			s = longer
		}
		stages = append(stages, s)
		from = s.to
	}
	placeLocalBuffers(launches, stages)
	return stages
}

// joins reports whether a launch computes the same if it is run together with those before it.
func canFuse(group []Launch, next *Launch) bool {
	if next.Host.RowTile.Rows == 0 || group[0].Host.RowTile.Rows == 0 {
		return false
	}
	for i := range group {
		if !group[i].fusesWith(next) {
			return false
		}
	}
	return true
}

// fusesWith reports whether next's strips, one after the other, find what the launch leaves,
// and take away nothing that its other strips need: where memory is shared and one of the two
// writes it, both must own it, as a whole.
func (l *Launch) fusesWith(next *Launch) bool {
	for i, x := range l.Arguments {
		for j, y := range next.Arguments {
			if x.Buffer == nil || y.Buffer == nil || (x.Access|y.Access)&Write == 0 || !x.Buffer.Overlaps(y.Buffer) {
				continue
			}
			if j == 0 && next.Host.hasEpilogue() {
				continue // written when all strips are done
			}
			if i == 0 && l.Host.hasEpilogue() || !l.owns(i) || !next.owns(j) ||
				x.Buffer.Offset != y.Buffer.Offset || x.Buffer.Bytes() != y.Buffer.Bytes() {
				return false
			}
		}
	}
	return true
}

// before and after are the phases on both sides of the one that keeps to strips.
func (h *HostKernel) prologue() []Phase { return h.Phases[:h.RowTile.Phase] }
func (h *HostKernel) epilogue() []Phase { return h.Phases[h.RowTile.Phase+1:] }

// hasEpilogue reports whether phases follow the one that keeps to strips.
func (h *HostKernel) hasEpilogue() bool { return len(h.Phases) > h.RowTile.Phase+1 }

func (l *Launch) owns(argument int) bool {
	return l.Host.RowTile.Owns(argument, l.Arguments[argument].Buffer)
}

// cut cuts launches that can be run together into strips, and reports whether there are any: there
// are none where the caches or the workers would lose by it.
func (s *fusedStage) chooseTiles(group []Launch, workers int) bool {
	all := 0 // rows that all launches have, as some of their own
	for i := range group {
		all = gcd(all, group[i].Host.RowTile.Rows)
	}
	unit, turn, own, shared, most, tiles := 1, 1, 0, 0, 0, 0
	var parts []int
	for i := range group {
		strip := &group[i].Host.RowTile
		each := strip.Rows / all
		s.ratios = append(s.ratios, each)
		whole := strip.Unit / gcd(strip.Unit, each)
		unit *= whole / gcd(unit, whole)
		if strip.aligned {
			turn *= whole / gcd(turn, whole)
		}
		owned, others := group[i].footprint()
		own, shared, most = max(own, owned/all), shared+others, max(most, others)
		tiles = max(tiles, group[i].Host.Phases[strip.Phase].Tiles)
		if strip.Parts != nil {
			if each != 1 || parts != nil && !slices.Equal(parts, strip.Parts) {
				return false
			}
			parts = strip.Parts
		}
	}
	if own*unit > maxTileBytes || shared > max(maxSharedBytes, most+maxSharedBytes/8) {
		return false
	}
	if parts != nil {
		return s.tileParts(parts, unit, turn, tileBytes/max(1, own), workers)
	}
	least := 4 * workers
	if own*all < cacheBytes*workers {
		least = 16 * workers // even work is worth more
	}
	least = min(least, tiles)
	if (all+unit-1)/unit < least {
		return false
	}
	largest := min(all/max(1, least), tileBytes/max(1, own))
	strip := evenTile(all, unit, largest, workers)
	s.appendTiles(0, all, strip)
	s.tiles = append(s.tiles, all)
	for n := range s.tiles {
		s.items = append(s.items, n)
	}
	return true
}

// add adds strips of rows [lo, hi).
func (s *fusedStage) appendTiles(lo, hi, strip int) {
	for ; lo < hi; lo += strip {
		s.tiles = append(s.tiles, lo)
	}
}

// tileParts makes an item of each part, if the workers have nearly even work then and each begins
// with a multiple of turn.
func (s *fusedStage) tileParts(parts []int, unit, turn, largest, workers int) bool {
	busiest, all := 0, parts[len(parts)-1]
	for n, lo := range parts[:len(parts)-1] {
		hi := parts[n+1]
		if lo%turn != 0 {
			return false
		}
		s.items = append(s.items, len(s.tiles))
		s.appendTiles(lo, hi, evenTile(hi-lo, unit, largest, 1))
		busiest = max(busiest, hi-lo)
	}
	s.items, s.tiles = append(s.items, len(s.tiles)), append(s.tiles, all)
	items := len(parts) - 1
	return float64((items+workers-1)/workers*busiest*workers) <= maxImbalance*float64(all)
}

// evenTile returns the size of strips: of the multiples of unit up to largest that by which the
// worker with the most work has least, or unit.
func evenTile(rows, unit, largest, workers int) (strip int) {
	busiest := math.MaxInt
	for size := unit; size == unit || size <= largest; size += unit {
		n := (rows + size - 1) / size
		if work := min(rows, (n+workers-1)/workers*size); work <= busiest {
			strip, busiest = size, work
		}
	}
	return strip
}

// footprint is how many bytes a launch owns, and how many others all of its strips read.
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

// divisor is the greatest common divisor.
func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
