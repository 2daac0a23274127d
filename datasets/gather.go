package datasets

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets/internal/decode"
)

// encodedImage is an image file, or an image in a row of a Parquet file.
type encodedImage struct {
	name   string // in data sets, remarks and the hash
	path   string // of the file
	shard  *shard // the Parquet file, or nil
	row    int    // in the shard
	inside string // the path that the row has for the image, or ""
	id     string // that the row has for the image, see Dataset.IDs
}

// place returns where an image is, for errors.
func (e encodedImage) place() string {
	if e.shard == nil {
		return e.name
	}
	return e.shard.place(e.row)
}

// imageQueue hands out images to several goroutines. It reads the rows of Parquet files itself,
// since these must be read in their order.
type imageQueue struct {
	mutex  sync.Mutex
	images []encodedImage
	next   int
	rows   *rowReader // of the shard of the last row
}

// take returns the next image, or -1 after the last one. If it is in a row, its content, for which
// the budget has room, is in r until the content is released.
func (q *imageQueue) take(ctx context.Context, b *budget, r *imageReader) (i int, content []byte, err error) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if q.next == len(q.images) {
		return -1, nil, nil
	}
	i = q.next
	q.next++
	image := q.images[i]
	if image.shard == nil {
		return i, nil, nil
	}
	if q.rows == nil || q.rows.shard != image.shard {
		q.close()
		q.rows = image.shard.rows()
	}
	read, err := q.rows.read(image.row)
	if err == nil {
		err = b.acquire(ctx, b.files, "datasets: reading "+image.place(), overhead+int64(len(read)))
	}
	if err != nil {
		return i, nil, err
	}
	r.content.Reset()
	r.content.Write(read)
	return i, r.content.Bytes(), nil
}

// release returns the room for the content of a row.
func (b *budget) release(r *imageReader, content []byte) {
	if content != nil {
		b.files.Release(overhead + int64(len(content)))
		r.shrink()
	}
}

// close closes the Parquet file that is being read.
func (q *imageQueue) close() {
	if q.rows != nil {
		q.rows.close()
	}
}

// inParallel calls work for each image from a goroutine per processor, each with its own reader,
// and with the content of an image in a row, or the error of reading it. After each call it calls
// report with the number done, from one goroutine at a time. It returns early if the options'
// context ends.
func inParallel(images []encodedImage, b *budget, options Options, report func(done int), work func(i int, r *imageReader, row []byte, err error)) error {
	queue := &imageQueue{images: images}
	defer queue.close()
	var done int
	var reporting sync.Mutex
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(images)) {
		workers.Go(func() {
			r := newImageReader(options.Crop, options.Bits)
			for options.context().Err() == nil {
				i, row, err := queue.take(options.context(), b, r)
				if i < 0 {
					return
				}
				work(i, r, row, err)
				b.release(r, row)
				reporting.Lock()
				done++
				report(done)
				reporting.Unlock()
			}
		})
	}
	workers.Wait()
	return errors.Wrap(options.context().Err(), "datasets: reading images")
}

// imageFiles are images to decode.
type imageFiles struct {
	subject string // names the whole set in errors and progress
	images  []encodedImage
	shaping int // the number of images, from the first, whose headers suggest the shape
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
	all, err := f.gather(s, options)
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
	all, err = f.gather(better, options)
	return all, better, err
}

// headers reads the headers of the images that suggest a shape, or returns nil if the options set
// it. The header of an unreadable image is empty; the image is reported when it is decoded.
func (f imageFiles) headers(options Options) ([]decode.Info, error) {
	if options.Channels != 0 && options.Height != 0 {
		return nil, nil
	}
	infos := make([]decode.Info, f.shaping)
	err := inParallel(f.images[:f.shaping], newBudget(0), options, func(int) {}, func(i int, r *imageReader, row []byte, err error) {
		switch {
		case err != nil:
		case f.images[i].shard != nil:
			infos[i] = r.header(bytes.NewReader(row))
		default:
			infos[i] = r.fileHeader(f.images[i].path)
		}
	})
	return infos, err
}

// fileHeader reads the header of an image file. It is empty if the image cannot be read.
func (r *imageReader) fileHeader(path string) decode.Info {
	file, err := openFile(path)
	if err != nil {
		return decode.Info{}
	}
	defer file.Close()
	// Probe would search a sparse file of 50 GB for metadata from chunk to chunk.
	if stat, err := file.Stat(); err != nil || stat.Size() > maxFile {
		return decode.Info{}
	}
	return r.header(file)
}

func (r *imageReader) header(source decode.Source) decode.Info {
	info, err := r.Probe(source)
	if err != nil {
		return decode.Info{}
	}
	return info
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
	remarks []decode.Remark
	failed  []ImageError // the files of skipped
}

// gather decodes the images.
func (f imageFiles) gather(s shape, options Options) (decodedImages, error) {
	n, size := len(f.images), s.size()
	if err := checkMemory(n, s); err != nil {
		return decodedImages{}, err
	}
	images := make([]byte, n*size)
	reasons, digests, notes := make([]error, n), make([][sha256.Size]byte, n), make([]decode.Notes, n)
	report := func(done int) {
		if options.OnProgress != nil {
			options.OnProgress(f.subject, int64(done), int64(n))
		}
	}
	budget := newBudget(len(images))
	options, stop := options.stoppable()
	defer stop(nil)
	err := inParallel(f.images, budget, options, report, func(i int, r *imageReader, row []byte, err error) {
		to := images[i*size : (i+1)*size]
		switch image := f.images[i]; {
		case image.shard == nil:
			digests[i], err = budget.decode(options.context(), r, image.path, to, s)
		case err == nil:
			digests[i] = sha256.Sum256(row)
			err = budget.decodeContent(options.context(), r, image.place(), row, to, s)
		}
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
	names := make([]string, n)
	for i, reason := range reasons {
		names[i] = f.images[i].name
		fmt.Fprintf(hash, "%s\n%x\n", names[i], digests[i])
		if reason != nil {
			failed := ImageError{f.images[i].place(), reason}
			if inside := f.images[i].inside; inside != "" {
				failed.Err = errors.WithMessage(reason, inside)
			}
			result.failed = append(result.failed, failed)
			result.skipped = append(result.skipped, failed.Error())
			continue
		}
		if at := len(result.kept); at < i {
			copy(images[at*size:(at+1)*size], images[i*size:(i+1)*size])
		}
		result.kept = append(result.kept, i)
	}
	result.images = images[:len(result.kept)*size]
	result.remarks = decode.Remarks(f.subject, names, result.kept, notes, options.Bits)
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
