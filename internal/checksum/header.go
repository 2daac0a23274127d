package checksum

import (
	"encoding/binary"
	"encoding/json"
	"io"

	"github.com/pkg/errors"
)

// prefix is the size in bytes of the length of the header, with which a safetensors file begins.
const prefix = 8

// longestHeader bounds the memory for a header.
const longestHeader = 16 << 20

// Header returns how many bytes of a safetensors file come before the values. Its checksum is
// there.
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
