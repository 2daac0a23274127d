package datasets

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"

	"github.com/pkg/errors"
	"golang.org/x/sync/semaphore"

	"github.com/pollen-ml/pollen/datasets/internal/decode"
	"github.com/pollen-ml/pollen/internal/memory"
)

// maxFile is the largest size of an image file, in bytes.
const maxFile = 1 << 30

// imageReader reads and decodes image files. It reuses its memory, and must be used by one
// goroutine at a time.
type imageReader struct {
	*decode.Decoder
	content bytes.Buffer
}

func newImageReader(crop bool, bits int) *imageReader {
	r := &imageReader{Decoder: decode.NewDecoder()}
	r.SetCrop(crop)
	r.SetBits(bits)
	return r
}

// readFile returns the content of a file, valid until the next call.
func (r *imageReader) readFile(path string) ([]byte, error) {
	file, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	r.content.Reset()
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
		r.content.Grow(int(min(info.Size(), maxFile)) + bytes.MinRead)
	}
	if n, err := r.content.ReadFrom(io.LimitReader(file, maxFile+1)); err != nil || n > maxFile {
		if err == nil {
			err = errors.Errorf("an image must have at most %d bytes", maxFile)
		}
		return nil, err
	}
	return r.content.Bytes(), nil
}

// shrink drops the buffer of a large file.
func (r *imageReader) shrink() {
	if r.content.Cap() > overhead {
		r.content = *new(bytes.Buffer)
	}
}

// The decoders of all workers together may take 1/budgetParts of the available memory, and the
// contents of files as much again. The rest is for the data themselves and garbage. Without a
// known limit each budget is unknownBudget; otherwise it is at least minBudget.
const (
	budgetParts   = 3
	unknownBudget = 4 << 30
	minBudget     = 2 * memory.Negligible
	// overhead is the memory that each worker keeps, for the buffers of a decoder.
	overhead = 1 << 20
)

// budget bounds the memory of image files that are read and decoded at the same time. A worker
// acquires files before pixels, and releases both before it acquires again.
type budget struct {
	limit         memory.Limit // of each
	files, pixels *semaphore.Weighted
}

// newBudget returns the budget for a program that is about to allocate decoded bytes for images.
func newBudget(decoded int) *budget {
	limit := memory.Available()
	if limit.Known() {
		limit.Bytes = max((limit.Bytes-int64(decoded))/budgetParts, minBudget)
	} else {
		limit.Bytes = unknownBudget
	}
	return &budget{limit, semaphore.NewWeighted(limit.Bytes), semaphore.NewWeighted(limit.Bytes)}
}

// acquire waits until bytes of a semaphore are free. If bytes exceed its limit, it returns a
// MemoryError.
func (b *budget) acquire(ctx context.Context, s *semaphore.Weighted, task string, bytes int64) error {
	if bytes > b.limit.Bytes {
		return errors.WithStack(&MemoryError{
			Task: task, Need: bytes, Limit: memory.Limit{Bytes: b.limit.Bytes, Reason: fmt.Sprintf("1/%d of %s", budgetParts, b.limit.Reason)},
		})
	}
	return s.Acquire(ctx, bytes)
}

// decode reads and decodes an image file into to, and returns the hash of its content.
func (b *budget) decode(ctx context.Context, r *imageReader, path string, to []byte, s shape) (hash [sha256.Size]byte, err error) {
	size := int64(overhead)
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() { // reading finds other errors
		if info.Size() > maxFile {
			return hash, errors.Errorf("an image must have at most %d bytes", maxFile)
		}
		size += info.Size()
	}
	if err := b.acquire(ctx, b.files, "datasets: reading "+path, size); err != nil {
		return hash, err
	}
	defer b.files.Release(size)
	content, err := r.readFile(path)
	if err != nil {
		return hash, err
	}
	defer r.shrink()
	return sha256.Sum256(content), b.decodeContent(ctx, r, path, content, to, s)
}

// decodeContent decodes the content of an image file into to.
func (b *budget) decodeContent(ctx context.Context, r *imageReader, name string, content, to []byte, s shape) error {
	info, err := r.Inspect(content)
	if err != nil {
		return err
	}
	pixels := int64(info.Memory)
	if err := b.acquire(ctx, b.pixels, "datasets: decoding "+name, pixels); err != nil {
		return err
	}
	defer b.pixels.Release(pixels)
	return r.DecodeInspected(ctx, info, to, content, s.channels, s.height, s.width)
}
