package checksum

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"math"
	"os"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/file"
)

// prefix is the size in bytes of the length of the header, with which a safetensors file begins.
const prefix = 8

// longestHeader bounds the memory for a header.
const longestHeader = 16 << 20

// Header returns the number of bytes of a safetensors file before the values, which include its
// checksum.
func Header(content []byte) int {
	if len(content) < prefix {
		return len(content)
	}
	return prefix + int(min(binary.LittleEndian.Uint64(content), uint64(len(content)-prefix)))
}

// Metadata reads only the metadata of a safetensors file.
func Metadata(from io.Reader) (map[string]string, error) {
	var size [prefix]byte
	if _, err := io.ReadFull(from, size[:]); err != nil {
		return nil, errors.Wrap(err, "checksum: header")
	}
	n := binary.LittleEndian.Uint64(size[:])
	if n > longestHeader {
		return nil, errors.Errorf("checksum: the header must have at most %d bytes, got %d", longestHeader, n)
	}
	var header struct {
		Metadata map[string]string `json:"__metadata__"`
	}
	err := json.NewDecoder(io.LimitReader(from, int64(n))).Decode(&header)
	return header.Metadata, errors.Wrap(err, "checksum: header")
}

// unchecked is the largest size in bytes that ReadFile reads whatever a file's header describes.
const unchecked = file.MaxJSON

// ReadFile returns the content of a safetensors file. A large one must have exactly the values that
// its header describes, so that a file with holes, which takes no room on the disk, does not take
// all memory. The error's cause is os.ErrNotExist if there is no file.
func ReadFile(path string) ([]byte, error) {
	opened, err := file.Open(path, 0)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	info, err := opened.Stat()
	if err != nil {
		return nil, errors.WithStack(err)
	}
	if info.Size() > unchecked {
		if err := checkSize(opened, uint64(info.Size())); err != nil {
			return nil, file.Irregular(path, "%v", err)
		}
	}
	return file.ReadOpened(opened, max(info.Size(), unchecked))
}

// checkSize compares the size of a safetensors file with its header, and returns to its beginning.
func checkSize(from *os.File, size uint64) error {
	offsets, n, err := readOffsets(from)
	if err != nil {
		return err
	}
	end := uint64(0)
	for _, tensor := range offsets {
		end = max(end, tensor[1])
	}
	if end > math.MaxInt64 || size != n+end {
		return errors.Errorf("checksum: the header describes %d bytes of values, got %d bytes after it", end, size-min(n, size))
	}
	_, err = from.Seek(0, io.SeekStart)
	return errors.WithStack(err)
}

// Tensor reads only the bytes of one tensor of a safetensors file, at most limit of them. The
// checksum is not verified.
func Tensor(from *os.File, name string, limit uint64) ([]byte, error) {
	offsets, n, err := readOffsets(from)
	if err != nil {
		return nil, err
	}
	at, ok := offsets[name]
	if !ok || at[0] > at[1] || at[1]-at[0] > limit || at[1] > math.MaxInt64-n {
		return nil, errors.Errorf("checksum: the file must have a tensor %q of at most %d bytes", name, limit)
	}
	values := make([]byte, at[1]-at[0])
	_, err = from.ReadAt(values, int64(n+at[0]))
	return values, errors.WithStack(err)
}

// readOffsets reads the header of a safetensors file. It returns where each tensor begins and ends
// in the values, and where these begin in the file.
func readOffsets(from io.Reader) (offsets map[string][2]uint64, start uint64, err error) {
	var size [prefix]byte
	if _, err := io.ReadFull(from, size[:]); err != nil {
		return nil, 0, errors.Wrap(err, "checksum: header")
	}
	n := binary.LittleEndian.Uint64(size[:])
	if n > longestHeader {
		return nil, 0, errors.Errorf("checksum: the header must have at most %d bytes, got %d", longestHeader, n)
	}
	var header map[string]struct {
		Offsets [2]uint64 `json:"data_offsets"`
	}
	if err := json.NewDecoder(io.LimitReader(from, int64(n))).Decode(&header); err != nil {
		return nil, 0, errors.Wrap(err, "checksum: header")
	}
	delete(header, "__metadata__")
	offsets = map[string][2]uint64{}
	for name, tensor := range header {
		offsets[name] = tensor.Offsets
	}
	return offsets, prefix + n, nil
}
