package decode

import (
	"encoding/binary"
	"io"
	"math"

	"github.com/pkg/errors"
)

// Tags of the directory of a TIFF image (TIFF 6.0, 1992).
const (
	tiffSubfile      = 254
	tiffWidth        = 256
	tiffHeight       = 257
	tiffBits         = 258
	tiffCompression  = 259
	tiffPhotometric  = 262
	tiffStrips       = 273
	tiffSamples      = 277
	tiffRowsPerStrip = 278
	tiffStripBytes   = 279
	tiffPlanar       = 284
	tiffPredictor    = 317
	tiffColours      = 320
	tiffTileWidth    = 322
	tiffTileHeight   = 323
	tiffTiles        = 324
	tiffTileBytes    = 325
	tiffExtra        = 338
	tiffFormat       = 339
)

// tiffDirectory is the first directory of a TIFF file or an EXIF block (TIFF 6.0, 1992, section 2).
type tiffDirectory struct {
	source  io.ReaderAt
	order   binary.ByteOrder
	entries []byte // 12 each: tag, type, count, and the values or their offset
	next    int64  // offset of the next directory, or 0
	cut     bool   // the source ends before the directory does
}

// tiffValues are the values of a tag.
type tiffValues struct {
	count int64
	kind  uint16
	from  int64  // offset in the source, if the values are not in the entry
	entry []byte // the values if they are
}

const tiffEntry = 12

// readTIFFDirectory reads the first directory.
func readTIFFDirectory(source io.ReaderAt) (tiffDirectory, error) {
	d := tiffDirectory{source: source, order: binary.LittleEndian}
	var start [8]byte
	if _, err := source.ReadAt(start[:], 0); err != nil {
		return d, errors.Wrap(noEOF(err), "offset 0: TIFF header")
	}
	if start[0] == 'M' {
		d.order = binary.BigEndian
	}
	return d, d.read(int64(d.order.Uint32(start[4:])))
}

// read reads a directory. One that the source cuts has the entries before the end.
func (d *tiffDirectory) read(from int64) error {
	var count [2]byte
	if _, err := d.source.ReadAt(count[:], from); err != nil {
		return errors.Wrapf(noEOF(err), "offset %d: TIFF directory", from)
	}
	d.entries = make([]byte, tiffEntry*int(d.order.Uint16(count[:]))+4)
	n, err := d.source.ReadAt(d.entries, from+2)
	if err != nil && err != io.EOF {
		return err
	}
	d.next = 0
	if n == len(d.entries) {
		d.next = int64(d.order.Uint32(d.entries[n-4:]))
	}
	d.cut = n < len(d.entries)-4
	d.entries = d.entries[:min(n, len(d.entries)-4)/tiffEntry*tiffEntry]
	return nil
}

// hasPages reports whether a page follows, and not only the first one in a smaller size.
func (d tiffDirectory) hasPages() bool {
	next := d
	const reduced = 1
	return d.next != 0 && next.read(d.next) == nil && len(next.entries) > 0 && next.value(tiffSubfile, 0)&reduced == 0
}

// size returns the bytes of a value, or 0 for a type that sizes and offsets do not have.
func (v tiffValues) size() int64 {
	switch v.kind {
	case 1:
		return 1
	case 3:
		return 2
	case 4:
		return 4
	}
	return 0
}

// values returns the values of a tag; their count is 0 if the directory has no such tag, or values
// of a type that sizes and offsets do not have.
func (d tiffDirectory) values(tag uint16) tiffValues {
	for at := 0; at < len(d.entries); at += tiffEntry {
		entry := d.entries[at : at+tiffEntry]
		if d.order.Uint16(entry) != tag {
			continue
		}
		v := tiffValues{kind: d.order.Uint16(entry[2:]), count: int64(d.order.Uint32(entry[4:]))}
		switch size := v.size(); {
		case size == 0:
			v.count = 0
		case size*v.count > 4:
			v.from = int64(d.order.Uint32(entry[8:]))
		default:
			v.entry = entry[8:]
		}
		return v
	}
	return tiffValues{}
}

// at returns value i of v, or -1 if there is none.
func (d tiffDirectory) at(v tiffValues, i int64) int64 {
	if i < 0 || i >= v.count {
		return -1
	}
	size := v.size()
	var buffer [4]byte
	b := buffer[:size]
	if v.entry != nil {
		b = v.entry[i*size:][:size]
	} else if _, err := d.source.ReadAt(b, v.from+i*size); err != nil {
		return -1
	}
	switch size {
	case 1:
		return int64(b[0])
	case 2:
		return int64(d.order.Uint16(b))
	default:
		return int64(d.order.Uint32(b))
	}
}

// value returns the first value of a tag, or otherwise if there is none.
func (d tiffDirectory) value(tag uint16, otherwise int64) int64 {
	if value := d.at(d.values(tag), 0); value >= 0 {
		return value
	}
	return otherwise
}

// sum returns the sum of a tag's values. If the source has fewer than it announces, those are
// summed.
func (d tiffDirectory) sum(tag uint16) int64 {
	v, sum := d.values(tag), int64(0)
	for i := range v.count {
		value := d.at(v, i)
		if value < 0 || sum > math.MaxInt64/2 {
			break
		}
		sum += value
	}
	return sum
}
