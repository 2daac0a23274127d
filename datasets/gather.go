package datasets

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets/internal/decode"
)

// inParallel calls work for 0 ... n-1 from a goroutine per processor, each with its own reader.
// After each call it calls report with the number done, from one goroutine at a time. It returns
// early if the options' context ends.
func inParallel(n int, options Options, report func(done int), work func(i int, r *imageReader)) error {
	var next, done atomic.Int64
	var reporting sync.Mutex
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		workers.Go(func() {
			r := newImageReader(options.Crop, options.Bits)
			for options.context().Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				work(i, r)
				reporting.Lock()
				report(int(done.Add(1)))
				reporting.Unlock()
			}
		})
	}
	workers.Wait()
	return errors.Wrap(options.context().Err(), "datasets: reading images")
}

// imageFiles are the files of images to decode.
type imageFiles struct {
	subject string   // names the whole set in errors and progress
	paths   []string // of the files
	names   []string // of the files, for errors and the hash
	shaping int      // the number of files, from the first, whose headers suggest the shape
}

// decode decodes the images in the shape of the options. Where they set none, the headers of the
// images that can be decoded suggest it.
func (f imageFiles) decode(options Options) (decodedImages, shape, error) {
	infos, err := f.headers(options)
	if err != nil {
		return decodedImages{}, shape{}, err
	}
	s, err := chooseShape(infos, options)
	if err != nil {
		return decodedImages{}, s, err
	}
	all, err := gather(f.subject, f.paths, f.names, s, options)
	if err != nil || infos == nil || len(all.kept) == 0 {
		return all, s, err
	}
	// Files that cannot be decoded may have suggested another shape by their headers.
	decoded := make([]decode.Info, f.shaping)
	for _, i := range all.kept {
		if i < f.shaping {
			decoded[i] = infos[i]
		}
	}
	better, err := chooseShape(decoded, options)
	if err != nil || better == s {
		return all, s, err
	}
	all, err = gather(f.subject, f.paths, f.names, better, options)
	return all, better, err
}

// headers reads the headers of the images that suggest a shape, or returns nil if the options set
// it. The header of an unreadable image is empty; the image is reported when it is decoded.
func (f imageFiles) headers(options Options) ([]decode.Info, error) {
	if options.Channels != 0 && options.Height != 0 {
		return nil, nil
	}
	infos := make([]decode.Info, f.shaping)
	err := inParallel(len(infos), options, func(int) {}, func(i int, r *imageReader) {
		file, err := openFile(f.paths[i])
		if err != nil {
			return
		}
		defer file.Close()
		// Probe would search a sparse file of 50 GB for metadata from chunk to chunk.
		if stat, err := file.Stat(); err != nil || stat.Size() > maxFile {
			return
		}
		if info, err := r.Probe(file); err == nil {
			infos[i] = info
		}
	})
	return infos, err
}

// chooseShape returns the shape of decoded images: from the options, or else from the headers.
func chooseShape(infos []decode.Info, options Options) (shape, error) {
	wanted := shape{options.Channels, options.Height, options.Width}
	if infos != nil {
		suggestShape(&wanted, slices.Clone(infos))
	}
	if err := wanted.check(); err != nil {
		return wanted, invalid("Channels", "%v", err) // the options' sides were checked before
	}
	return wanted, nil
}

// maxOwnSide is the largest height and width that images keep without a requested shape.
const maxOwnSide = 256

// suggestShape fills in the channels and sides that are 0: one channel if all images are stored in
// grey, else three; the images' own size if all have the same and it fits, else a square of 32 if
// the median of the shorter sides is below 64, else of 64.
func suggestShape(wanted *shape, infos []decode.Info) {
	infos = slices.DeleteFunc(infos, func(info decode.Info) bool { return info.Height == 0 })
	grey, same := true, true
	var shorter []int
	for _, info := range infos {
		grey = grey && info.Grey
		same = same && info.Height == infos[0].Height && info.Width == infos[0].Width
		shorter = append(shorter, min(info.Height, info.Width))
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
	case same && len(infos) > 0 && max(infos[0].Height, infos[0].Width) <= maxOwnSide:
		wanted.height, wanted.width = infos[0].Height, infos[0].Width
	case len(shorter) > 0 && shorter[len(shorter)/2] < 64:
		wanted.height, wanted.width = 32, 32
	default:
		wanted.height, wanted.width = 64, 64
	}
}

// decodedImages is the result of decoding image files.
type decodedImages struct {
	images  []byte // the images that could be read, in the order of the files
	kept    []int  // their indices
	skipped []string
	hash    string // SHA-256 over the files' names and contents
	remarks []string
	failed  []ImageError // the files of skipped
}

// gather decodes image files. names are for errors and the hash. subject names the whole set in
// errors and progress.
func gather(subject string, paths, names []string, s shape, options Options) (decodedImages, error) {
	n, size := len(paths), s.size()
	if err := checkMemory(n, s); err != nil {
		return decodedImages{}, err
	}
	images := make([]byte, n*size)
	reasons, digests, notes := make([]error, n), make([][sha256.Size]byte, n), make([]decode.Notes, n)
	report := func(done int) {
		if options.OnProgress != nil {
			options.OnProgress(subject, int64(done), int64(n))
		}
	}
	budget := newBudget(len(images))
	options, stop := options.stoppable()
	defer stop(nil)
	err := inParallel(n, options, report, func(i int, r *imageReader) {
		var err error
		digests[i], err = budget.decode(options.context(), r, paths[i], images[i*size:(i+1)*size], s)
		if isMemory(err) {
			stop(err) // no fault of the image's, which must not be skipped
		}
		reasons[i], notes[i] = err, r.Notes()
	})
	if cause := context.Cause(options.context()); isMemory(cause) {
		return decodedImages{}, cause
	}
	if err != nil {
		return decodedImages{}, err
	}
	var result decodedImages
	hash := sha256.New()
	for i, reason := range reasons {
		fmt.Fprintf(hash, "%s\n%x\n", names[i], digests[i])
		if reason != nil {
			result.failed = append(result.failed, ImageError{names[i], reason})
			result.skipped = append(result.skipped, names[i]+": "+reason.Error())
			continue
		}
		if at := len(result.kept); at < i {
			copy(images[at*size:(at+1)*size], images[i*size:(i+1)*size])
		}
		result.kept = append(result.kept, i)
	}
	result.images = images[:len(result.kept)*size]
	result.remarks = decode.Remarks(subject, names, result.kept, notes, options.Bits)
	result.hash = hex.EncodeToString(hash.Sum(nil))
	return result, nil
}

// stoppable returns the options with a context that stop ends.
func (o Options) stoppable() (Options, context.CancelCauseFunc) {
	var stop context.CancelCauseFunc
	o.Context, stop = context.WithCancelCause(o.context())
	return o, stop
}

// remarkSkipped remarks on the files of splits that were skipped. Splits drawn from one set share
// their list.
func (o Options) remarkSkipped(splits ...*Dataset) {
	name, skipped := "", []string{}
	for _, part := range splits {
		if part != nil {
			name, skipped = part.Name, append(skipped, part.Skipped...)
		}
	}
	slices.Sort(skipped)
	switch skipped = slices.Compact(skipped); len(skipped) {
	case 0:
	case 1:
		o.remark("%s: skipped 1 file, %s", name, skipped[0])
	default:
		o.remark("%s: skipped %d files, first %s", name, len(skipped), skipped[0])
	}
}

// checkSkipped returns an error if more files were skipped than the options allow, or all.
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
	return errors.WithStack(&SkippedError{subject, skipped, kept, allowed})
}
