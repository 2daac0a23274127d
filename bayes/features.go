package bayes

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
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
)

// parts are the two stages of a network's predictions: a frozen stem, which maps images to
// features, computed once for each image, and the network that is sampled. stem is nil unless
// everything before the head is frozen; without a stem, the network reads images.
type parts struct {
	stem    *stem
	file    *networkFile
	network layers.Sequential
	images  samples.Images // shape and moments of the images
	width   int            // of the features
}

// inputs returns the shape of what the sampled network reads, without values.
func (p parts) inputs() samples.Images {
	if p.stem == nil {
		return p.images
	}
	return samples.Images{Features: p.width}
}

// featureBatch is the number of images whose features are computed together. On the host, a few
// images are instead computed one by one, which has the same bits: the cached features of an image
// do not depend on the number of images that were requested with it.
const featureBatch = 16

// extractor computes what the sampled network reads: features of images, or the images themselves
// without a stem. It loads the stem when it is first needed.
type extractor struct {
	parts
	device  tensor.Device
	observe func(done, total, images int)
	remark  func(text string)
	// sessions compute batches of one image and of featureBatch images. They are loaded when they
	// are first needed.
	sessions map[int]*graph.Session
	dir      string              // where features are kept on disk; "" is nowhere
	now      func() time.Time    // dates the use of features there
	cache    *featurecache.Cache // opened when it is first needed
}

func (p parts) extractor(device tensor.Device) *extractor {
	return &extractor{
		parts: p, device: device, observe: func(int, int, int) {}, remark: func(string) {}, sessions: map[int]*graph.Session{},
	}
}

// keepIn makes the extractor keep features in the directory that options name, if any.
func (e *extractor) keepIn(options environment) {
	e.dir, e.now, e.remark = options.featureDir, options.now, options.remark
}

// program returns the stem as a program whose steps compute the features of a batch.
func (p parts) program(batch int) (*graph.Program, error) {
	b := graph.New(tensor.Float32)
	b.Mode = graph.Prediction
	b.Output(featuresOutput, p.stem.Apply(b, p.images.Input(b, op.Batch{Size: batch}, batch)))
	return b.Compile()
}

// batchOf returns the batch size for the first of the remaining images. On GPUs bits depend on the
// size, and on the host a batch that is mostly empty is a waste of time.
func batchOf(device tensor.Device, remaining int) int {
	if _, host := device.(*tensor.Host); host && remaining < featureBatch/2 {
		return 1
	}
	return featureBatch
}

const featuresOutput = "features"

// of returns the inputs of the sampled network for images [N C H W].
func (e *extractor) of(ctx context.Context, pixels []byte) (samples.Images, error) {
	if e.stem == nil {
		images := e.images
		images.Pixels = pixels
		return images, nil
	}
	size := e.images.Bytes(1)
	n := len(pixels) / size
	rows := samples.Images{Features: e.width, Rows: make([]float32, n*e.width)}
	row := func(i int) []float32 { return rows.Rows[i*e.width : (i+1)*e.width] }
	// Look in memory first, then on the disk, and compute the rest.
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
		e.observe(done, len(missing), len(batch))
	}
	e.keep(keys, missing, row)
	return rows, nil
}

// recall sets the keys of images, and the features that are in memory or on disk. It returns the
// numbers of the other images.
func (e *extractor) recall(keys []featurecache.Key, pixels []byte, row func(i int) []float32) (missing []int) {
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
func (e *extractor) keep(keys []featurecache.Key, missing []int, row func(i int) []float32) {
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
func (e *extractor) session(batch int) (*graph.Session, error) {
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
func (e *extractor) compute(capacity int, batch []int, pixels []byte, row func(i int) []float32) error {
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
				return errors.Errorf("pollen: model %s: a feature of image %d is not finite", e.stem.name, at)
			}
		}
		copy(row(at), one)
	}
	return nil
}

// close frees the memory.
func (e *extractor) close() (err error) {
	if e == nil {
		return nil
	}
	for _, s := range e.sessions {
		err = cmp.Or(err, s.Close())
	}
	return err
}

// identity describes all that features depend on apart from the image: the network, its input and
// the device, since devices round differently. The threads of the host make no difference.
func (e *extractor) identity() string {
	device := e.device.Name()
	if _, ok := e.device.(*tensor.Host); ok {
		device = "host"
		if kernel.InstructionSet() == "portable Go" {
			device = "portable host"
		}
	}
	return fmt.Sprintf("%s\n%s\n%q\n%v\n%v\n%v %t", device, e.file.sum, e.stem.cut, e.images.Shape(), e.images.Mean, e.images.Std, e.stem.format.reversed)
}

// key returns the hash of an image and of all else that its features depend on.
func (e *extractor) key(pixels []byte) (key featurecache.Key) {
	hash := sha256.New()
	hash.Write([]byte(e.identity()))
	hash.Write(pixels)
	hash.Sum(key[:0])
	return key
}
