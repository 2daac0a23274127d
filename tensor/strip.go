package tensor

// Strip is what a host kernel may say of its first phase: of buffers with as many elements as
// Elements, tile i touches only those from i*Tile to (i+1)*Tile; other buffers it only reads. Later
// phases then touch the workspace alone, and write the launch's first argument. The zero Strip says
// nothing.
//
// Launches that follow one another with the same Strip are run together: their first tiles, then
// their second ones, and so on. What one leaves to the next is then still in the thread's cache,
// and not read from memory again.
type Strip struct {
	Elements, Tile int
}

// Strips is Rows for a kernel that touches, of its buffers of rows times width elements, only those
// of its own rows.
func Strips(rows, width int, run func(a *Args, lo, hi int)) HostKernel {
	h := Rows(rows, width, run)
	h.Strip = Strip{Elements: rows * width, Tile: rowsOfTile(width) * width}
	return h
}

// stage is launches [from, to) that are run together: tile by tile of their first phases, then one
// after the other.
type stage struct {
	from, to int
}

// stagesOf cuts a schedule into stages, as long as they can be.
func stagesOf(launches []Launch) (stages []stage) {
	for from := 0; from < len(launches); {
		to := from + 1
		for to < len(launches) && joins(launches[from:to], &launches[to]) {
			to++
		}
		stages = append(stages, stage{from, to})
		from = to
	}
	return stages
}

// joins reports whether a launch can be run together with those before it.
func joins(group []Launch, next *Launch) bool {
	strip := next.Host.Strip
	if strip == (Strip{}) || strip != group[0].Host.Strip {
		return false
	}
	for i := range group {
		if !group[i].keepsToStrips(next) {
			return false
		}
	}
	return true
}

// keepsToStrips reports whether next's first phase, tile by tile, finds what the launch leaves, and
// takes away nothing that the launch's other tiles need: where memory is shared and one of the two
// writes it, it must be one strip for both.
func (l *Launch) keepsToStrips(next *Launch) bool {
	for i, x := range l.Arguments {
		for j, y := range next.Arguments {
			if x.Buffer == nil || y.Buffer == nil || (x.Access|y.Access)&Write == 0 || !x.Buffer.Overlaps(y.Buffer) {
				continue
			}
			if late := j == 0 && len(next.Host.Phases) > 1; late {
				continue // written when all tiles are done
			}
			late := i == 0 && len(l.Host.Phases) > 1
			if late || !l.Host.Strip.covers(x.Buffer) || !l.Host.Strip.covers(y.Buffer) ||
				x.Buffer.Offset != y.Buffer.Offset || x.Buffer.Bytes() != y.Buffer.Bytes() {
				return false
			}
		}
	}
	return true
}

func (s Strip) covers(b *Buffer) bool { return b.Elements == s.Elements }
