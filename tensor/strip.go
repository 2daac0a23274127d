package tensor

import "math"

// Strip is what a host kernel may say of one of its phases: that it handles rows which do not know
// of one another. Of the buffers that the launch owns, a row's share is the row's alone; others the
// phase only reads. Phases before it read others alone, and write the workspace; those after it
// read the workspace alone, and write the launch's first argument. The zero Strip says nothing.
type Strip struct {
	Phase      int
	Rows, Unit int // equal parts of each buffer that is owned, and how many are handled together
	Owns       func(argument int, b *Buffer) bool
	Run        func(a *Args, lo, hi int) // rows [lo, hi), in whole units but for the last ones
}

// Strips is Rows for a kernel that touches, of its buffers of rows times width elements, only those
// of its own rows.
func Strips(rows, width int, run func(a *Args, lo, hi int)) HostKernel {
	h := Rows(rows, width, run)
	h.Strip = Strip{Rows: rows, Unit: 1, Owns: func(_ int, b *Buffer) bool { return b.Elements == rows*width }, Run: run}
	return h
}

const (
	// stripBytes is what a strip's share of a launch's buffers takes where there is a choice, and
	// mostStripBytes the most for which launches are run together: it should stay in the cache.
	stripBytes     = 128 << 10
	mostStripBytes = 2 << 20
	// cacheBytes is what a worker finds in its cache again in any case.
	cacheBytes = 2 << 20
	// mostSharedBytes are the filters and the like of several launches, which each strip reads.
	mostSharedBytes = 512 << 10
)

// stage is launches [from, to). Several that keep to strips are run together: the first rows of
// all of them, then the next ones, and so on, rows[i] at a time of launch from+i. What one leaves
// to the next is then still in the thread's cache, and not read from memory again.
type stage struct {
	from, to int
	strips   int
	rows     []int
}

// stagesOf cuts a schedule into stages, as long as they can be with some strips for each worker.
func stagesOf(launches []Launch, workers int) (stages []stage) {
	for from := 0; from < len(launches); {
		s := stage{from: from, to: from + 1}
		for s.to < len(launches) && joins(launches[from:s.to], &launches[s.to]) {
			strips, rows := cutStrips(launches[from:s.to+1], workers)
			if strips == 0 {
				break
			}
			s = stage{from, s.to + 1, strips, rows}
		}
		stages = append(stages, s)
		from = s.to
	}
	return stages
}

// joins reports whether a launch computes the same if it is run together with those before it.
func joins(group []Launch, next *Launch) bool {
	if next.Host.Strip.Rows == 0 || group[0].Host.Strip.Rows == 0 {
		return false
	}
	for i := range group {
		if !group[i].keepsToStrips(next) {
			return false
		}
	}
	return true
}

// keepsToStrips reports whether next's strips, one after the other, find what the launch leaves,
// and take away nothing that its other strips need: where memory is shared and one of the two
// writes it, both must own it, as a whole.
func (l *Launch) keepsToStrips(next *Launch) bool {
	for i, x := range l.Arguments {
		for j, y := range next.Arguments {
			if x.Buffer == nil || y.Buffer == nil || (x.Access|y.Access)&Write == 0 || !x.Buffer.Overlaps(y.Buffer) {
				continue
			}
			if j == 0 && next.Host.endsLate() {
				continue // written when all strips are done
			}
			if i == 0 && l.Host.endsLate() || !l.owns(i) || !next.owns(j) ||
				x.Buffer.Offset != y.Buffer.Offset || x.Buffer.Bytes() != y.Buffer.Bytes() {
				return false
			}
		}
	}
	return true
}

// before and after are the phases on both sides of the one that keeps to strips.
func (h *HostKernel) before() []Phase { return h.Phases[:h.Strip.Phase] }
func (h *HostKernel) after() []Phase  { return h.Phases[h.Strip.Phase+1:] }

// endsLate reports whether phases follow the one that keeps to strips.
func (h *HostKernel) endsLate() bool { return len(h.Phases) > h.Strip.Phase+1 }

func (l *Launch) owns(argument int) bool {
	return l.Host.Strip.Owns(argument, l.Arguments[argument].Buffer)
}

// cutStrips cuts launches that can be run together: into how many strips, and how many rows each
// launch has of one. There are none where the caches or the workers would lose by it.
func cutStrips(group []Launch, workers int) (count int, rows []int) {
	// All have their rows in as many parts; a strip is some of these.
	parts := 0
	for i := range group {
		parts = divisor(parts, group[i].Host.Strip.Rows)
	}
	strip, own, shared, most, tiles := 1, 0, 0, 0, 0
	for i := range group {
		s := &group[i].Host.Strip
		whole := s.Unit / divisor(s.Unit, s.Rows/parts)
		strip *= whole / divisor(strip, whole)
		owned, others := group[i].stripBytes()
		own, shared, most = max(own, owned/parts), shared+others, max(most, others)
		tiles = max(tiles, group[i].Host.Phases[s.Phase].Tiles)
	}
	if own*strip > mostStripBytes || shared > max(mostSharedBytes, most+mostSharedBytes/8) {
		return 0, nil
	}
	least := 4 * workers
	if own*parts < cacheBytes*workers {
		least = 16 * workers // even work is worth more
	}
	least = min(least, tiles)
	if (parts+strip-1)/strip < least {
		return 0, nil
	}
	largest := min(parts/max(1, least), stripBytes/max(1, own))
	strip, count = evenStrips(parts, strip, largest, workers)
	for i := range group {
		rows = append(rows, group[i].Host.Strip.Rows/parts*strip)
	}
	return count, rows
}

// evenStrips returns the size of strips and their number: of the multiples of unit up to largest
// that by which the worker with the most work has least, or unit.
func evenStrips(parts, unit, largest, workers int) (strip, count int) {
	busiest := math.MaxInt
	for size := unit; size == unit || size <= largest; size += unit {
		n := (parts + size - 1) / size
		if work := min(parts, (n+workers-1)/workers*size); work <= busiest {
			strip, count, busiest = size, n, work
		}
	}
	return strip, count
}

// stripBytes is how many bytes a launch owns, and how many others all of its strips read.
func (l *Launch) stripBytes() (own, others int) {
	for i, a := range l.Arguments {
		switch {
		case a.Buffer == nil || i == 0 && l.Host.endsLate():
		case l.owns(i):
			own += a.Buffer.Bytes()
		default:
			others += a.Buffer.Bytes()
		}
	}
	if l.Host.Strip.Phase > 0 {
		others += l.Host.Workspace
	}
	return own, others
}

// divisor is the greatest common divisor.
func divisor(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
