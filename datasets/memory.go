package datasets

import (
	"fmt"

	"github.com/pkg/errors"

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

// checkedRead is the number of bytes of an array that are read before the memory for all of them
// is checked, since a header may announce more bytes than there are. It is a power of two.
const checkedRead = 16 << 20

// checkGrowing returns a MemoryError if a slice cannot grow to size bytes. In the last step it is
// copied from a slice of half its size.
func checkGrowing(size int) error {
	return memory.Check(fmt.Sprintf("datasets: reading an array of %d bytes", size), int64(size)+int64(size)/2, nil)
}
