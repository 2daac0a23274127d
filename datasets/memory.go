package datasets

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"

	"github.com/pkg/errors"
	"golang.org/x/sync/semaphore"

	"github.com/pollen-ml/pollen/internal/memory"
)

// MemoryError is the error of data that need more memory than the process can take. It is found
// before the memory is allocated.
type MemoryError = memory.Error

func isMemory(err error) bool { return errors.As(err, new(*MemoryError)) }

// checkMemory returns a MemoryError if n images do not fit into the available memory.
func checkMemory(n int, s shape) error {
	task := fmt.Sprintf("datasets: reading %d images of %dx%dx%d", n, s.channels, s.height, s.width)
	return memory.Check(task, int64(n)*int64(s.size()), func(int64) []string { return []string{"a smaller height and width (size)", "fewer images"} })
}

// checkCopy returns a MemoryError if there is no memory for a copy of some images.
func checkCopy(d *Dataset, n int) error {
	task := fmt.Sprintf("datasets: %s: copying %d images", d.Name, n)
	return memory.Check(task, int64(n)*int64(d.ImageSize()), func(int64) []string {
		return []string{"a smaller height and width (size)", "data with their own splits"}
	})
}

// checkCached returns a MemoryError if a file of decoded images does not fit into the memory.
func checkCached(size int64) error {
	return memory.Check("datasets: reading decoded images", size, nil)
}

// checkedRead is the number of bytes of an array that are read before the memory for all of them is
// checked: a header that announces more than there is must not cost more. It is a power of two.
const checkedRead = 16 << 20

// checkGrowing returns a MemoryError if a slice cannot grow to size bytes: at the last step it is
// copied from one of half its size.
func checkGrowing(size int) error {
	return memory.Check(fmt.Sprintf("datasets: reading an array of %d bytes", size), int64(size)+int64(size)/2, nil)
}

// Decoders of all workers together may take a part of what is available, and files another, so that
// the data themselves and garbage have room. Without a known limit it is unknownBudget each, and
// at least minBudget.
const (
	budgetParts   = 3
	unknownBudget = 4 << 30
	minBudget     = 2 * memory.Negligible
	// overhead is what a worker keeps: buffers of a decoder.
	overhead = 1 << 20
)

// budget bounds the memory of image files that are read and decoded at the same time. A worker
// acquires files before pixels, and releases both before it acquires again.
type budget struct {
	limit         memory.Limit // of each
	files, pixels *semaphore.Weighted
}

// newBudget returns the budget when some bytes are about to be used for decoded images.
func newBudget(decoded int) *budget {
	limit := memory.Available()
	if limit.Known() {
		limit.Bytes = max((limit.Bytes-int64(decoded))/budgetParts, minBudget)
	} else {
		limit.Bytes = unknownBudget
	}
	return &budget{limit, semaphore.NewWeighted(limit.Bytes), semaphore.NewWeighted(limit.Bytes)}
}

// acquire waits for bytes of a semaphore; more than its limit are a MemoryError.
func (b *budget) acquire(ctx context.Context, s *semaphore.Weighted, task string, bytes int64) error {
	if bytes > b.limit.Bytes {
		return errors.WithStack(&MemoryError{
			Task: task, Need: bytes, Limit: memory.Limit{Bytes: b.limit.Bytes, Reason: fmt.Sprintf("1/%d of %s", budgetParts, b.limit.Reason)},
		})
	}
	return s.Acquire(ctx, bytes)
}

// decode reads and decodes an image file into to, and returns the hash of its content.
func (b *budget) decode(ctx context.Context, d *decoder, path string, to []byte, s shape) (hash [sha256.Size]byte, err error) {
	size := int64(overhead)
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() { // other errors are those of reading
		if info.Size() > maxFile {
			return hash, errors.Errorf("an image must have at most %d bytes", maxFile)
		}
		size += info.Size()
	}
	if err := b.acquire(ctx, b.files, "datasets: reading "+path, size); err != nil {
		return hash, err
	}
	defer b.files.Release(size)
	content, err := d.readFile(path)
	if err != nil {
		return hash, err
	}
	defer d.shrink()
	hash = sha256.Sum256(content)
	info, err := d.inspect(content)
	if err != nil {
		return hash, err
	}
	pixels := int64(info.memory)
	if err := b.acquire(ctx, b.pixels, "datasets: decoding "+path, pixels); err != nil {
		return hash, err
	}
	defer b.pixels.Release(pixels)
	return hash, d.decodeInspected(ctx, info, to, content, s.channels, s.height, s.width)
}

// shrink drops the buffer of a large file.
func (d *decoder) shrink() {
	if d.content.Cap() > overhead {
		d.content = *new(bytes.Buffer)
	}
}

// stoppable returns the options with a context that stop ends.
func (o Options) stoppable() (Options, context.CancelCauseFunc) {
	var stop context.CancelCauseFunc
	o.Context, stop = context.WithCancelCause(o.context())
	return o, stop
}
