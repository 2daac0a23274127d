package checksum

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/file"
)

// A sparse file takes no room on the disk, and must take no memory either.
func TestReadFileSparse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.safetensors")
	header := `{"__metadata__":{"step":"1"},"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`
	content := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header+"\x00\x00\x00\x00"...)
	for name, head := range map[string]string{
		"values left over": string(content), "no header": strings.Repeat("\xff", 100), "empty header": strings.Repeat("\x00", 100),
	} {
		if err := os.WriteFile(path, []byte(head), 0o644); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadFile(path); err != nil || string(got) != head {
			t.Errorf("%s: ReadFile = %q, %v, want the content", name, got, err)
		}
		if err := os.Truncate(path, 20<<30); err != nil {
			t.Skip(err)
		}
		if got, err := ReadFile(path); !errors.As(err, new(*file.IrregularError)) {
			t.Errorf("%s, sparse: ReadFile = %d bytes, %v, want IrregularError", name, len(got), err)
		}
	}
}

// A large file with the values that its header describes is read.
func TestReadFileLarge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.safetensors")
	header := `{"w":{"dtype":"U8","shape":[67108864],"data_offsets":[0,67108864]}}`
	if err := os.WriteFile(path, append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...), 0o644); err != nil {
		t.Fatal(err)
	}
	want := int64(8 + len(header) + 64<<20)
	if err := os.Truncate(path, want); err != nil {
		t.Skip(err)
	}
	if got, err := ReadFile(path); err != nil || int64(len(got)) != want {
		t.Errorf("ReadFile = %d bytes, %v, want %d", len(got), err, want)
	}
}
