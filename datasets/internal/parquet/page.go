package parquet

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"hash/crc32"
	"io"
	"math"
	"math/bits"
	"sync"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/memory"
)

// The types of pages.
const (
	dataPage       = 0
	indexPage      = 1
	dictionaryPage = 2
	dataPage2      = 3
)

// The encodings of values and levels.
const (
	plain           = 0
	plainDictionary = 2
	runLengths      = 3
	rleDictionary   = 8
)

// encodingNames has the names of encodings for errors.
var encodingNames = map[int64]string{
	4: "BIT_PACKED", 5: "DELTA_BINARY_PACKED", 6: "DELTA_LENGTH_BYTE_ARRAY", 7: "DELTA_BYTE_ARRAY", 9: "BYTE_STREAM_SPLIT",
}

// codecNames has the names of compressions for errors.
var codecNames = map[int64]string{3: "LZO", 4: "Brotli", 5: "LZ4", 7: "LZ4"}

// pageHeader is the header of a page. Fields that a type of pages does not have are 0.
type pageHeader struct {
	kind, unpacked, packed int64
	hasSum                 bool
	sum                    uint32 // CRC-32 of the packed page
	values, encoding       int64
	levelEncoding          int64 // of a page of version 1
	levels, repetitions    int64 // sizes in a page of version 2
	plain                  bool  // a page of version 2 that is not compressed
}

// parseHeader parses a page's header at the start of data, and returns its size.
func parseHeader(data []byte) (h pageHeader, size int, err error) {
	t := &thrift{data: data}
	t.structure(thriftStruct, func(id int64, kind thriftType) bool {
		switch id {
		case 1:
			h.kind = t.integer(kind)
		case 2:
			h.unpacked = t.integer(kind)
		case 3:
			h.packed = t.integer(kind)
		case 4:
			h.hasSum, h.sum = true, uint32(t.integer(kind))
		case 5:
			t.integers(kind, map[int64]*int64{1: &h.values, 2: &h.encoding, 3: &h.levelEncoding})
		case 7:
			t.integers(kind, map[int64]*int64{1: &h.values, 2: &h.encoding})
		case 8:
			t.structure(kind, func(id int64, kind thriftType) bool {
				switch id {
				case 1:
					h.values = t.integer(kind)
				case 4:
					h.encoding = t.integer(kind)
				case 5:
					h.levels = t.integer(kind)
				case 6:
					h.repetitions = t.integer(kind)
				case 7: // a boolean, whose type is its value
					h.plain = kind == thriftFalse
				default:
					return false
				}
				return true
			})
		default:
			return false
		}
		return true
	})
	return h, len(data) - len(t.data), t.err
}

// Headers with long statistics are read in steps.
const (
	firstHeader = 1 << 12
	maxHeader   = 1 << 24
)

// readHeader reads the header of the next page.
func (v *Values) readHeader() (pageHeader, error) {
	for window := int64(firstHeader); ; window *= 16 {
		window = min(window, v.end-v.at)
		v.packed = resize(v.packed, window)
		if _, err := v.file.source.ReadAt(v.packed, v.at); err != nil {
			return pageHeader{}, noEOF(err)
		}
		h, size, err := parseHeader(v.packed)
		if err == io.ErrUnexpectedEOF && window < min(v.end-v.at, maxHeader) {
			continue
		}
		v.at += int64(size)
		v.total += int64(size)
		return h, err
	}
}

// A column may grow by growth when it is unpacked, and by some bytes for each row: a label that all
// images have is compressed to nearly nothing.
const (
	growth      = 1000
	growthRow   = 16
	growthStart = 1 << 20
)

// readPage reads the data of a page and unpacks them into to. Data of version 2 begin with levels,
// which are not compressed.
func (v *Values) readPage(h pageHeader, to []byte) ([]byte, error) {
	if h.packed < 0 || h.packed > v.end-v.at {
		return nil, errors.Errorf("a page must have at most the %d bytes that are left of its column, got %d", v.end-v.at, h.packed)
	}
	if h.unpacked < 0 || h.unpacked > v.file.limit || h.packed > v.file.limit {
		return nil, errors.Errorf("a page must have at most %d bytes, got %d, and %d unpacked", v.file.limit, h.packed, h.unpacked)
	}
	start := h.levels
	if start < 0 || start > min(h.packed, h.unpacked) || h.repetitions != 0 {
		return nil, errors.Errorf("a page of %d bytes must have levels within it and no lists, got %d bytes of levels and %d of lists",
			h.packed, start, h.repetitions)
	}
	v.total += h.packed
	v.unpacked += h.unpacked
	if most := growth*v.total + growthRow*v.file.Rows + growthStart; v.unpacked > most {
		return nil, errors.Errorf("%d bytes of pages must unpack to at most %d, got %d", v.total, most, v.unpacked)
	}
	if need := h.packed + h.unpacked; need > int64(cap(v.packed)+cap(to)) {
		if err := memory.Check("parquet: reading a page", need, nil); err != nil {
			return nil, err
		}
	}
	v.packed = resize(v.packed, h.packed)
	if _, err := v.file.source.ReadAt(v.packed, v.at); err != nil {
		return nil, noEOF(err)
	}
	v.at += h.packed
	if h.hasSum && crc32.ChecksumIEEE(v.packed) != h.sum {
		return nil, errors.New("the page is damaged: its checksum differs")
	}
	to = resize(to, h.unpacked)
	copy(to, v.packed[:start])
	codec := v.codec
	if h.plain {
		codec = 0
	}
	return to, unpack(codec, to[start:], v.packed[start:])
}

// resize returns a slice of n bytes, in the memory of buffer if it is large enough. Otherwise it
// has some room for the next.
func resize(buffer []byte, n int64) []byte {
	if int64(cap(buffer)) < n {
		return make([]byte, n, max(n, min(n+n/4, 2*int64(cap(buffer)))))
	}
	return buffer[:n]
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// newZstd returns a decoder into slices that have room for the result. It may be used by several
// goroutines.
var newZstd = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecodeAllCapLimit(true))
})

// unpack decompresses data, whose result must fill to.
func unpack(codec int64, to, packed []byte) error {
	n := 0
	var err error
	switch codec {
	case 0:
		if n = len(packed); n <= len(to) {
			copy(to, packed)
		}
	case 1:
		if n, err = snappy.DecodedLen(packed); err == nil && n == len(to) {
			_, err = snappy.Decode(to, packed)
		}
	case 2:
		var r *gzip.Reader
		if r, err = gzip.NewReader(bytes.NewReader(packed)); err == nil {
			if n, err = io.ReadFull(r, to); err == nil || len(to) == 0 {
				var more int64
				more, err = io.Copy(io.Discard, io.LimitReader(r, 1)) // checks the sum at the end
				n += int(more)
			}
		}
	case 6:
		decoder, failed := newZstd()
		if failed != nil {
			return failed
		}
		var result []byte
		result, err = decoder.DecodeAll(packed, to[:0:len(to)])
		n = len(result)
	default:
		name := codecNames[codec]
		if name == "" {
			name = "an unknown one"
		}
		return errors.Errorf("compression must be none, Snappy, gzip or zstd, got %s", name)
	}
	if err != nil {
		return errors.Wrap(err, "the page is damaged")
	}
	if n != len(to) {
		return errors.Errorf("the page must unpack to %d bytes, got %d", len(to), n)
	}
	return nil
}

// hybrid decodes small integers in Parquet's hybrid of runs and packed bits.
type hybrid struct {
	data   []byte
	width  int // bits of a value
	left   uint64
	value  uint32
	packed []byte // nil in a run
	bit    uint64 // in packed
}

// newHybrid returns a decoder of values up to most.
func newHybrid(data []byte, most uint32) hybrid {
	return hybrid{data: data, width: bits.Len32(most)}
}

func (h *hybrid) next() (uint32, error) {
	for h.left == 0 {
		head, n := binary.Uvarint(h.data)
		if n <= 0 {
			return 0, errors.New("the page must have more values")
		}
		if head>>1 > math.MaxInt32 {
			return 0, errors.Errorf("a run must have at most %d values, got %d", math.MaxInt32, head>>1)
		}
		h.data = h.data[n:]
		h.left, h.packed, h.bit = head>>1, nil, 0
		size := uint64(h.width+7) / 8
		if head&1 == 1 {
			size = min(head>>1*uint64(h.width), uint64(len(h.data))) // the last byte may be missing
			h.left = head >> 1 * 8
			h.packed = h.data[:size:size]
		}
		if size > uint64(len(h.data)) {
			return 0, errors.New("a run must be within its page")
		}
		if h.packed == nil {
			h.value = 0
			for i, b := range h.data[:size] {
				h.value |= uint32(b) << (8 * i)
			}
		}
		h.data = h.data[size:]
	}
	h.left--
	if h.packed == nil {
		return h.value, nil
	}
	if (h.bit+uint64(h.width)+7)/8 > uint64(len(h.packed)) {
		return 0, errors.New("packed values must be within their page")
	}
	var word [8]byte
	copy(word[:], h.packed[h.bit/8:])
	value := binary.LittleEndian.Uint64(word[:]) >> (h.bit % 8) & (1<<h.width - 1)
	h.bit += uint64(h.width)
	return uint32(value), nil
}
