package datasets

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pkg/errors"
)

// maxFile is the largest size of one picture's file, in bytes.
const maxFile = 1 << 30

// A shape is the shape of one image.
type shape struct{ channels, height, width int }

func (s shape) size() int { return s.channels * s.height * s.width }

// inParallel calls work for 0 ... n-1 from as many goroutines as there are processors, each with
// its own decoder, and after each call report with the number done, from one goroutine at a time.
// It ends early when the options' context does.
func inParallel(n int, options Options, report func(done int), work func(i int, d *decoder)) error {
	var next, done atomic.Int64
	var reporting sync.Mutex
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		workers.Go(func() {
			d := newDecoder()
			for options.context().Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				work(i, d)
				reporting.Lock()
				report(int(done.Add(1)))
				reporting.Unlock()
			}
		})
	}
	workers.Wait()
	return errors.Wrap(options.context().Err(), "datasets: reading pictures")
}

// chooseShape returns the shape in which pictures are read: as the options ask, or else as the
// headers of the given files suggest.
func chooseShape(paths []string, options Options) (shape, error) {
	wanted := shape{options.Channels, options.Height, options.Width}
	if wanted.channels == 0 || wanted.height == 0 {
		infos := make([]imageInfo, len(paths))
		err := inParallel(len(paths), options, func(int) {}, func(i int, d *decoder) {
			// An unreadable picture does not count here; it is named when it is decoded.
			if file, err := os.Open(paths[i]); err == nil {
				if info, err := d.probe(file); err == nil {
					infos[i] = info
				}
				file.Close()
			}
		})
		if err != nil {
			return wanted, err
		}
		suggestShape(&wanted, infos)
	}
	if err := checkShape(wanted.channels, wanted.height, wanted.width); err != nil {
		return wanted, invalid("Channels", "%v", err) // check has looked at the sides
	}
	return wanted, nil
}

// suggestShape fills in the channels and the sides that are 0. It is one channel if all pictures
// are stored in grey, else three, and the pictures' own size if all agree on one that fits, else a
// square of 32 if the median of the shorter sides is below 64, else of 64.
func suggestShape(wanted *shape, infos []imageInfo) {
	infos = slices.DeleteFunc(infos, func(info imageInfo) bool { return info.height == 0 })
	grey, same := true, true
	var shorter []int
	for _, info := range infos {
		grey = grey && info.grey
		same = same && info.height == infos[0].height && info.width == infos[0].width
		shorter = append(shorter, min(info.height, info.width))
	}
	if wanted.channels == 0 {
		wanted.channels = 3
		if grey && len(infos) > 0 {
			wanted.channels = 1
		}
	}
	if wanted.height != 0 {
		return
	}
	slices.Sort(shorter)
	switch {
	case same && len(infos) > 0 && max(infos[0].height, infos[0].width) <= MaxSide:
		wanted.height, wanted.width = infos[0].height, infos[0].width
	case len(shorter) > 0 && shorter[len(shorter)/2] < 64:
		wanted.height, wanted.width = 32, 32
	default:
		wanted.height, wanted.width = 64, 64
	}
}

// checkMemory returns an error if n images do not fit into the machine's available memory.
func checkMemory(n int, s shape) error {
	high := int64(1 << 40)
	if available := availableMemory(); available > 0 {
		high = available
	}
	if bytes := int64(n) * int64(s.size()); bytes > high {
		return errors.Errorf("datasets: %d images of %dx%dx%d are %.1f GB, the machine has %.1f GB to give: ask for a smaller height and width",
			n, s.channels, s.height, s.width, float64(bytes)/1e9, float64(high)/1e9)
	}
	return nil
}

// availableMemory returns the number of bytes available, 0 if the system does not say (it is asked
// the way Linux is).
func availableMemory() int64 {
	content, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	_, line, _ := strings.Cut(string(content), "MemAvailable:")
	line, _, _ = strings.Cut(line, "kB")
	kilobytes, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	if err != nil {
		return 0
	}
	return kilobytes << 10
}

// gathered is the result of decoding a number of pictures.
type decodedImages struct {
	images  []byte // of those that could be read, in the order of the pictures
	kept    []int  // their indices
	skipped []string
	hash    string // SHA-256 over the pictures' names, sizes and contents
}

// gather decodes pictures. The names are for errors and the hash; subject is what the pictures
// belong to.
func gather(subject string, paths, names []string, s shape, options Options) (decodedImages, error) {
	n, size := len(paths), s.size()
	if err := checkMemory(n, s); err != nil {
		return decodedImages{}, err
	}
	images := make([]byte, n*size)
	reasons, digests := make([]error, n), make([][sha256.Size]byte, n)
	report := func(done int) {
		if options.OnProgress != nil {
			options.OnProgress(subject, int64(done), int64(n))
		}
	}
	err := inParallel(n, options, report, func(i int, d *decoder) {
		content, err := d.readFile(paths[i])
		if err == nil {
			digests[i] = sha256.Sum256(content)
			err = d.decode(images[i*size:(i+1)*size], content, s.channels, s.height, s.width)
		}
		reasons[i] = err
	})
	if err != nil {
		return decodedImages{}, err
	}
	var result decodedImages
	hash := sha256.New()
	for i, reason := range reasons {
		fmt.Fprintf(hash, "%s\n%x\n", names[i], digests[i])
		if reason != nil {
			result.skipped = append(result.skipped, names[i]+": "+reason.Error())
			continue
		}
		if at := len(result.kept); at < i {
			copy(images[at*size:(at+1)*size], images[i*size:(i+1)*size])
		}
		result.kept = append(result.kept, i)
	}
	result.images = images[:len(result.kept)*size]
	result.hash = hex.EncodeToString(hash.Sum(nil))
	return result, nil
}

// readFile returns the content of a file, valid until the next call.
func (d *decoder) readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	d.content.Reset()
	if n, err := d.content.ReadFrom(io.LimitReader(file, maxFile+1)); err != nil || n > maxFile {
		if err == nil {
			err = errors.Errorf("more than %d bytes, want a picture", maxFile)
		}
		return nil, err
	}
	return d.content.Bytes(), nil
}

// checkSkipped returns an error if more pictures were skipped than the options
// allow, or all.
func checkSkipped(subject string, skipped []string, kept int, options Options) error {
	allowed := options.MaxSkipped
	switch {
	case allowed == 0:
		allowed = 0.05
	case allowed < 0:
		allowed = 0
	}
	all := len(skipped) + kept
	if all == 0 || kept > 0 && float64(len(skipped)) <= allowed*float64(all) {
		return nil
	}
	first := strings.Join(skipped[:min(len(skipped), 5)], "\n  ")
	if kept == 0 {
		return errors.Errorf("datasets: %s: no picture can be read of %d. The first:\n  %s", subject, all, first)
	}
	return errors.Errorf("datasets: %s: %d of %d pictures are left out, want at most %g %%. The first:\n  %s", subject, len(skipped), all, 100*allowed, first)
}
