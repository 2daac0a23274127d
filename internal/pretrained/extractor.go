package pretrained

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/internal/featurecache"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
)

// Frozen is a stem whose weights are all frozen, for images of one shape, mean and standard
// deviation.
type Frozen struct {
	*Stem
	images samples.Images // without pixels
	width  int            // number of features
}

// Frozen returns the stem for images, whose pixels are not used.
func (s *Stem) Frozen(images samples.Images) (*Frozen, error) {
	width, err := s.Width(images.Shape())
	return &Frozen{s, images.Empty(), width}, err
}

// Features returns the shape of the features, without values.
func (f *Frozen) Features() samples.Images { return samples.Images{Features: f.width} }

// featureBatch is the number of images whose features are computed together. On the host, a few
// images are instead computed one by one, which has the same bits: the cached features of an image
// do not depend on the number of images that were requested with it.
const featureBatch = 16

// batchOf returns the batch size for the first of the remaining images. On GPUs bits depend on the
// size, and on the host a batch that is mostly empty is a waste of time.
func batchOf(device tensor.Device, remaining int) int {
	if _, host := device.(*tensor.Host); host && remaining < featureBatch/2 {
		return 1
	}
	return featureBatch
}

// Batches returns the batch sizes in which the features of n images may be computed.
func Batches(device tensor.Device, n int) []int {
	return slices.Compact([]int{batchOf(device, n), batchOf(device, 1)})
}

// Size returns the memory of a session that computes the features of a batch, and the bytes of
// initial values while it is loaded.
func (f *Frozen) Size(device tensor.Device, batch int) (session tensor.Footprint, initial int, err error) {
	program, err := f.program(batch)
	if err != nil {
		return session, 0, err
	}
	return program.Size(device, 1)
}

// Bytes returns the bytes of the features of n images, and of those that are kept in memory.
func (f *Frozen) Bytes(n int) int { return 4*n*f.width + min(4*n*f.width, maxMemory) }

// program returns the stem as a program whose steps compute the features of a batch.
func (f *Frozen) program(batch int) (*graph.Program, error) {
	b := graph.New(tensor.Float32)
	b.Mode = graph.Prediction
	b.Output(featuresOutput, f.Apply(b, f.images.Input(b, op.Batch{Size: batch}, batch)))
	return b.Compile()
}

const featuresOutput = "features"

// Extractor computes the features of images. It loads the stem when it is first needed.
type Extractor struct {
	*Frozen
	device tensor.Device
	// sessions compute batches of one image and of featureBatch images. They are loaded when they
	// are first needed.
	sessions map[int]*graph.Session
	observe  func(done, total, images int)

	dir    string              // where features are kept on disk; "" is nowhere
	now    func() time.Time    // dates the use of features there
	remark func(text string)   // about the disk
	cache  *featurecache.Cache // opened when it is first needed
}

// Extractor returns an extractor on a device. observe, if not nil, is called with the numbers of
// images that were computed so far, are to be computed, and were computed since the last call.
func (f *Frozen) Extractor(device tensor.Device, observe func(done, total, images int)) *Extractor {
	return &Extractor{Frozen: f, device: device, sessions: map[int]*graph.Session{}, observe: observe}
}

// KeepIn makes the extractor keep features in a directory, unless that is "". now dates their use.
// A directory that cannot be written to is remarked upon, and features are not kept.
func (e *Extractor) KeepIn(dir string, now func() time.Time, remark func(text string)) {
	e.dir, e.now, e.remark = dir, now, remark
}

// WarmUp computes the features of a black image without keeping them, so that later calls do not
// wait for the stem to be loaded.
func (e *Extractor) WarmUp() error {
	black, features := make([]byte, e.images.Bytes(1)), make([]float32, e.width)
	return e.compute(batchOf(e.device, 1), []int{0}, black, func(int) []float32 { return features })
}

// Extract returns the features of images [N C H W]. It looks in memory first, then on the disk, and
// computes the others.
func (e *Extractor) Extract(ctx context.Context, pixels []byte) (samples.Images, error) {
	size := e.images.Bytes(1)
	n := len(pixels) / size
	rows := samples.Images{Features: e.width, Rows: make([]float32, n*e.width)}
	row := func(i int) []float32 { return rows.Rows[i*e.width : (i+1)*e.width] }
	keys := make([]featurecache.Key, n)
	missing := e.recall(keys, pixels, row)
	for done := 0; done < len(missing); {
		if err := ctx.Err(); err != nil {
			return rows, errors.Wrap(err, "pollen: features")
		}
		size := batchOf(e.device, len(missing)-done)
		batch := missing[done:min(done+size, len(missing))]
		if err := e.compute(size, batch, pixels, row); err != nil {
			return rows, err
		}
		for _, i := range batch {
			e.file.memory.put(keys[i], row(i))
		}
		done += len(batch)
		if e.observe != nil {
			e.observe(done, len(missing), len(batch))
		}
	}
	e.keep(keys, missing, row)
	return rows, nil
}

// recall sets the keys of images, and the features that are in memory or on disk. It returns the
// numbers of the other images.
func (e *Extractor) recall(keys []featurecache.Key, pixels []byte, row func(i int) []float32) (missing []int) {
	size := e.images.Bytes(1)
	for i := range keys {
		keys[i] = e.key(pixels[i*size : (i+1)*size])
		if !e.file.memory.get(keys[i], row(i)) {
			missing = append(missing, i)
		}
	}
	if e.dir == "" || len(missing) == 0 {
		return missing
	}
	if e.cache == nil {
		e.cache = featurecache.Open(e.dir, e.identity(), e.width, featurecache.MaxBytes, e.now)
	}
	reader := e.cache.Reader()
	defer reader.Close()
	return slices.DeleteFunc(missing, func(i int) bool {
		found := reader.Get(keys[i], row(i))
		if found {
			e.file.memory.put(keys[i], row(i))
		}
		return found
	})
}

// keep writes the features that were missing to disk.
func (e *Extractor) keep(keys []featurecache.Key, missing []int, row func(i int) []float32) {
	if e.cache == nil || len(missing) == 0 {
		return
	}
	var computed []featurecache.Key
	for _, i := range missing {
		computed = append(computed, keys[i])
	}
	if err := e.cache.Put(computed, func(i int) []float32 { return row(missing[i]) }); err != nil {
		e.remark(fmt.Sprintf("features cannot be cached, and the next start computes them again: %v (set XDG_CACHE_HOME for another cache directory)", err))
		e.dir, e.cache = "", nil
	}
}

// session returns the session that computes batches of the given size.
func (e *Extractor) session(batch int) (*graph.Session, error) {
	if s := e.sessions[batch]; s != nil {
		return s, nil
	}
	program, err := e.program(batch)
	if err != nil {
		return nil, err
	}
	s, err := program.Load(e.device, graph.LoadOptions{})
	if err == nil {
		e.sessions[batch] = s
	}
	return s, err
}

// compute computes the features of a batch of images, whose numbers are given.
func (e *Extractor) compute(capacity int, batch []int, pixels []byte, row func(i int) []float32) error {
	s, err := e.session(capacity)
	if err != nil {
		return err
	}
	size := e.images.Bytes(1)
	filled := make([]byte, 0, capacity*size)
	for i := range capacity { // a smaller batch is filled with its last image
		at := batch[min(i, len(batch)-1)]
		filled = append(filled, pixels[at*size:(at+1)*size]...)
	}
	images := e.images
	images.Pixels = filled
	if err := images.Write(s); err != nil {
		return err
	}
	if err := s.SetStep(0, 0); err != nil {
		return err
	}
	if err := s.Run(1); err != nil {
		return err
	}
	values := make([]float32, capacity*e.width)
	if err := s.ReadFloats(featuresOutput, 0, values); err != nil {
		return err
	}
	for i, at := range batch {
		one := values[i*e.width : (i+1)*e.width]
		for _, v := range one {
			if v-v != 0 {
				return errors.Errorf("pollen: model %s: a feature of image %d is not finite", e.file.name, at)
			}
		}
		copy(row(at), one)
	}
	return nil
}

// Close frees the memory.
func (e *Extractor) Close() (err error) {
	for _, s := range e.sessions {
		err = cmp.Or(err, s.Close())
	}
	return err
}

// identity describes all that features depend on apart from the image: the network, its input and
// the device, since devices round differently. The threads of the host make no difference.
func (e *Extractor) identity() string {
	device := e.device.Name()
	if _, ok := e.device.(*tensor.Host); ok {
		device = "host"
		if kernel.InstructionSet() == "portable Go" {
			device = "portable host"
		}
	}
	return fmt.Sprintf("%s\n%s\n%q\n%v\n%v\n%v %t", device, e.file.sum, e.cut, e.images.Shape(), e.images.Mean, e.images.Std, e.input.reversed)
}

// key returns the hash of an image and of all else that its features depend on.
func (e *Extractor) key(pixels []byte) (key featurecache.Key) {
	hash := sha256.New()
	hash.Write([]byte(e.identity()))
	hash.Write(pixels)
	hash.Sum(key[:0])
	return key
}
