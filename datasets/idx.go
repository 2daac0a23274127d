package datasets

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"io"

	"github.com/pkg/errors"
)

// The IDX format of the MNIST files (Y. LeCun, C. Cortes and C. Burges, "The MNIST database of
// handwritten digits"): two zero bytes, a byte for the type of the values, a byte for the number of
// dimensions, each dimension as a big-endian 32-bit number, then the values, the last dimension
// fastest.
const (
	idxUnsignedByte = 0x08    // type code of bytes, the only supported type
	idxMaxRank      = 4       // N, C, H, W
	idxMaxSize      = 1 << 30 // values; the largest data set of the family, EMNIST by class, has 547 million
	idxFirstRead    = 1 << 20 // bytes to allocate before any have arrived
)

// idxTypes are NumPy's names for the types of values that are not read.
var idxTypes = map[byte]string{0x09: "int8", 0x0B: "int16", 0x0C: "int32", 0x0D: "float32", 0x0E: "float64"}

// readIDX reads an array of bytes in IDX format, optionally gzip-compressed, up to the end of r.
// name is for errors. check, unless it is nil, checks the dimensions before values are read.
//
// It returns an error if the type is not unsigned byte, if there are not 1 to 4 dimensions or one
// is 0, if there are more values than the limit, or if the number of values does not match the
// dimensions. Memory grows with the data that arrive, not with the announced dimensions.
func readIDX(name string, r io.Reader, limit int64, check func(dimensions []int) error) ([]int, []byte, error) {
	data, err := decompress(r)
	if err != nil {
		return nil, nil, errors.Wrapf(err, "datasets: %s: offset 0: gzip header", name)
	}
	dimensions, err := readIDXHeader(data, limit)
	if err == nil && check != nil {
		err = errors.Wrap(check(dimensions), "offset 4")
	}
	if err != nil {
		return nil, nil, errors.Wrapf(err, "datasets: %s", name)
	}
	header, size := 4+4*len(dimensions), 1
	for _, n := range dimensions {
		size *= n
	}
	values, err := readGrowing(data, size)
	if err != nil {
		return nil, nil, errors.Wrapf(err, "datasets: %s: offset %d: got %d of %d values of %v",
			name, header+len(values), len(values), size, dimensions)
	}
	switch _, err := data.ReadByte(); {
	case err == nil:
		return nil, nil, errors.Errorf("datasets: %s: offset %d: must end after %d values of %v, got more data",
			name, header+size, size, dimensions)
	case err != io.EOF:
		return nil, nil, errors.Wrapf(err, "datasets: %s: offset %d: must be the end of the data", name, header+size)
	}
	return dimensions, values, nil
}

// decompress returns the content of r, decompressed if it begins like gzip.
func decompress(r io.Reader) (*bufio.Reader, error) {
	buffered := bufio.NewReaderSize(r, 1<<16)
	if start, err := buffered.Peek(2); err != nil || start[0] != 0x1f || start[1] != 0x8b {
		return buffered, nil // an error of r is repeated by the first read
	}
	unpacked, err := gzip.NewReader(buffered)
	if err != nil {
		return nil, noEOF(err)
	}
	return bufio.NewReaderSize(unpacked, 1<<16), nil
}

// readIDXHeader reads the magic number and the dimensions.
func readIDXHeader(r *bufio.Reader, limit int64) ([]int, error) {
	var magic [4]byte
	if n, err := io.ReadFull(r, magic[:]); err != nil {
		return nil, errors.Wrapf(noEOF(err), "offset %d: got %d of the 4 bytes of the magic number", n, n)
	}
	rank := int(magic[3])
	if magic[0] != 0 || magic[1] != 0 || magic[2] != idxUnsignedByte || rank < 1 || rank > idxMaxRank {
		more, _ := r.Peek(pageStart) // fewer if the file is shorter
		what := pageAdvice(append(magic[:], more...))
		if name := idxTypes[magic[2]]; name != "" && magic[0] == 0 && magic[1] == 0 {
			what = " (values of " + name + "): save array.astype(numpy.uint8), with values from 0 to 255"
		}
		return nil, errors.Errorf("offset 0: magic number must be 00 00 %02[2]x and 1 to %[3]d dimensions (an IDX file of bytes), got % [1]x%[4]s",
			magic, idxUnsignedByte, idxMaxRank, what)
	}
	dimensions, size := make([]int, rank), int64(1)
	for i := range dimensions {
		var word [4]byte
		offset := 4 + 4*i
		if n, err := io.ReadFull(r, word[:]); err != nil {
			return nil, errors.Wrapf(noEOF(err), "offset %d: got %d of the 4 bytes of dimension %d", offset+n, n, i)
		}
		// size <= limit <= 2^30 and a dimension is below 2^32: no overflow.
		n := int64(binary.BigEndian.Uint32(word[:]))
		if n == 0 {
			return nil, errors.Errorf("offset %d: dimension %d must be at least 1, got 0 (the array is empty)", offset, i)
		}
		if size *= n; size > limit {
			return nil, errors.Errorf("offset %d: the array must have at most %[5]d values, got %[4]d or more with dimension %[2]d of %[3]d",
				offset, i, n, size, limit)
		}
		dimensions[i] = int(n)
	}
	return dimensions, nil
}

// readGrowing reads size bytes into a slice that grows as they arrive. With an error it returns the
// bytes that arrived. It is a MemoryError if there is no memory for all of them.
func readGrowing(r io.Reader, size int) ([]byte, error) {
	values := make([]byte, 0, min(size, idxFirstRead))
	for {
		n, err := io.ReadFull(r, values[len(values):cap(values)])
		values = values[:len(values)+n]
		if err != nil {
			return values, noEOF(err)
		}
		if len(values) == size {
			return values, nil
		}
		if len(values) == checkedRead {
			if err := checkGrowing(size); err != nil {
				return values, err
			}
		}
		grown := make([]byte, len(values), min(size, 2*cap(values)))
		copy(grown, values)
		values = grown
	}
}

// noEOF turns io.EOF into io.ErrUnexpectedEOF.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
