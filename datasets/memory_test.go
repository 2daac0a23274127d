package datasets

import (
	"bytes"
	"context"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/pkg/errors"
	"golang.org/x/sync/semaphore"

	"github.com/pollen-ml/pollen/datasets/internal/decode"
	"github.com/pollen-ml/pollen/internal/memory"
)

func budgetOf(bytes int64) *budget {
	return &budget{memory.Limit{Bytes: bytes, Reason: "a test"}, semaphore.NewWeighted(bytes), semaphore.NewWeighted(bytes)}
}

// flatFile writes a PNG file of a few bytes and side x side pixels, and returns its path.
func flatFile(t *testing.T, side int) string {
	t.Helper()
	var content bytes.Buffer
	if err := png.Encode(&content, image.NewGray(image.Rect(0, 0, side, side))); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "flat.png")
	if err := os.WriteFile(path, content.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestBudget(t *testing.T) {
	path, s := flatFile(t, 1000), shape{1, 8, 8}
	to := make([]byte, s.size())
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := decode.Inspect(content)
	if err != nil {
		t.Fatal(err)
	}
	// With room for one image, four workers decode one after the other.
	b := budgetOf(int64(info.Memory))
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			if _, err := b.decode(t.Context(), newImageReader(false, 0), path, make([]byte, s.size()), s); err != nil {
				t.Error(err)
			}
		})
	}
	workers.Wait()
	if !b.files.TryAcquire(b.limit.Bytes) || !b.pixels.TryAcquire(b.limit.Bytes) {
		t.Error("the budget is not released")
	}
	// A worker whose context ends does not wait for the budget.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.decode(ctx, newImageReader(false, 0), path, to, s); !errors.Is(err, context.Canceled) {
		t.Errorf("with a used budget: %v", err)
	}
	for bytes, want := range map[int64]string{
		int64(info.Memory) - 1: "datasets: decoding " + path + " needs ", overhead: "datasets: reading " + path + " needs ",
	} {
		_, err := budgetOf(bytes).decode(t.Context(), newImageReader(false, 0), path, to, s)
		if !isMemory(err) {
			t.Errorf("a budget of %d bytes: %v, want a MemoryError", bytes, err)
		}
		wantError(t, err, want, "are available (1/3 of a test)")
	}
}

// A sparse file of gigabytes is refused by its size, before any of it is read.
func TestSparseFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sparse.png")
	if err := os.WriteFile(path, []byte("\x89PNG\r\n\x1a\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 50<<30); err != nil {
		t.Skip(err)
	}
	d := newImageReader(false, 0)
	_, err := budgetOf(1<<40).decode(t.Context(), d, path, make([]byte, 64), shape{1, 8, 8})
	wantError(t, err, "an image must have at most 1073741824 bytes")
	if d.content.Cap() > 0 {
		t.Errorf("%d bytes were allocated for it", d.content.Cap())
	}
}

func TestMemoryChecks(t *testing.T) {
	if !memory.Available().Known() {
		t.Skip("this system reports no limit of memory")
	}
	const exbibyte = 1 << 60
	d := &Dataset{Name: "large", Channels: 1, Height: 1 << 15, Width: 1 << 15}
	for name, err := range map[string]error{
		"reading": checkMemory(1<<40, shape{1, 256, 256}), "growing": checkGrowing(exbibyte), "copying": checkCopy(d, 1<<30),
	} {
		if !isMemory(err) {
			t.Errorf("%s: %v, want a MemoryError", name, err)
		}
	}
	if err := checkGrowing(checkedRead); err != nil {
		t.Error(err)
	}
	// An array that announces more than it has is cut, and needs no memory.
	values, err := readGrowing(bytes.NewReader(make([]byte, 100)), exbibyte)
	if len(values) != 100 || isMemory(err) {
		t.Errorf("an array of 100 bytes: %d bytes, %v", len(values), err)
	}
	values, err = readGrowing(zeros{}, exbibyte)
	if len(values) != checkedRead || !isMemory(err) {
		t.Errorf("an endless array: %d bytes, %v, want a MemoryError", len(values), err)
	}
}

type zeros struct{}

func (zeros) Read(to []byte) (int, error) { clear(to); return len(to), nil }
