package datasets

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"testing"

	"github.com/pollen-ml/pollen/internal/testenv"
)

// maxAllocated returns a bound of the bytes that reading content may allocate: compressed data
// may expand a thousandfold, and are copied while their slice grows.
func maxAllocated(content []byte) uint64 { return 32<<20 + 6000*uint64(len(content)) }

func FuzzNPZ(f *testing.F) {
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	for name, content := range map[string][]byte{
		"train_images.npy": npyBytes("|u1", "(2, 2, 2)", make([]byte, 8)), "train_labels.npy": npyBytes("|u1", "(2, 1)", []byte{0, 1}),
	} {
		member, err := w.Create(name)
		if err != nil {
			f.Fatal(err)
		}
		if _, err := member.Write(content); err != nil {
			f.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	f.Add(archive.Bytes())
	f.Add(archive.Bytes()[:archive.Len()-10])
	f.Fuzz(func(t *testing.T, content []byte) {
		used := testenv.Allocated(func() {
			parts, err := readNPZ("file.npz", bytes.NewReader(content), int64(len(content)), Options{})
			if err == nil && parts == [3]*arrayPart{} {
				t.Fatal("no arrays, and no error")
			}
		})
		if used > maxAllocated(content) {
			t.Fatalf("%d bytes were allocated for %d", used, len(content))
		}
	})
}

func FuzzCIFARArchive(f *testing.F) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for name, content := range map[string][]byte{"cifar/batches.meta.txt": []byte("a\nb\n"), "cifar/../data_batch_1.bin": make([]byte, 3073)} {
		if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(content)), Mode: 0o600}); err != nil {
			f.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			f.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	f.Add(archive.Bytes())
	f.Add(packed(f, archive.Bytes()))
	f.Fuzz(func(t *testing.T, content []byte) {
		used := testenv.Allocated(func() {
			contents, err := readCIFARArchive(bytes.NewReader(content))
			if err == nil {
				_, _ = readCIFAR("file", contents) // an error is as good
			}
		})
		if used > maxAllocated(content) {
			t.Fatalf("%d bytes were allocated for %d", used, len(content))
		}
	})
}

// FuzzGzip unpacks possible gzip bombs: the reader's limit bounds the number of bytes read.
func FuzzGzip(f *testing.F) {
	f.Add(packed(f, []byte("hello")))
	f.Add(packed(f, make([]byte, 1<<20)))
	f.Add([]byte{0x1f, 0x8b, 8, 0})
	f.Fuzz(func(t *testing.T, content []byte) {
		const limit = 1 << 16
		used := testenv.Allocated(func() {
			_, values, err := readIDX("file", bytes.NewReader(content), limit, nil)
			if err == nil && len(values) > limit {
				t.Fatalf("%d values", len(values))
			}
		})
		if used > 4<<20+64*uint64(len(content)) {
			t.Fatalf("%d bytes were allocated for %d", used, len(content))
		}
	})
}
