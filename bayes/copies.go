package bayes

import (
	"context"
	"math"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/internal/pretrained"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// copier makes Augment.Copies changed copies of each training image, for a head on a frozen
// network.
type copier struct {
	Augment
	data      *datasets.Dataset
	mean, std []float64 // of the training images, in whose units they are changed
	seed      uint64
}

// copier returns the copier of the training images; nil if their features are not of copies.
func (t *job) copier() *copier {
	if t.spec.Augment.isNone() || t.spec.Augment.atEachStep() {
		return nil
	}
	return &copier{*t.spec.Augment, t.data, t.mean, t.std, t.spec.Seed}
}

// maxCopiedBytes is the maximum number of bytes of copies that exist at a time, unless those of a
// single image are larger.
const maxCopiedBytes = 64 << 20

// images returns the number of images whose copies exist at a time.
func (c *copier) images() int {
	return min(c.data.Len(), max(1, maxCopiedBytes/(c.Copies*c.data.ImageSize())))
}

// features returns the features of the copies, in rows: all copies of the first image, then those
// of the second, and so on. Copies are rounded to bytes, like any image, so that their features can
// be kept and found again by their content.
func (c *copier) features(ctx context.Context, e environment, device tensor.Device, frozen *pretrained.Frozen) (samples.Images, error) {
	total, rows := c.data.Len()*c.Copies, frozen.Features()
	rows.Rows = make([]float32, 0, total*rows.Features)
	program, err := c.program()
	if err != nil {
		return rows, err
	}
	session, err := program.Load(device, graph.LoadOptions{Seed: c.seed})
	if err != nil {
		return rows, err
	}
	defer session.Close()
	made := 0
	x := e.extractor(device, frozen, func(done, missing, images int) {
		e.observe(Event{Task: "features", On: c.data.Name, Of: total, Done: made - missing + done, Total: total, Images: images})
	})
	defer x.Close()
	changed := make([]byte, 0, c.images()*c.Copies*c.data.ImageSize())
	for image := range c.data.Len() {
		if changed, err = c.appendCopies(changed, session, image); err != nil {
			return rows, errors.WithMessage(err, "pollen: augment")
		}
		if last := image+1 == c.data.Len(); len(changed) < cap(changed) && !last {
			continue
		}
		made = (image + 1) * c.Copies
		features, err := x.Extract(ctx, changed)
		if err != nil {
			return rows, err
		}
		rows.Rows, changed = append(rows.Rows, features.Rows...), changed[:0]
	}
	return rows, nil
}

// changedOutput is the name of the output of a copier's program.
const changedOutput = "changed"

// program returns a program each of whose steps makes a copy of one image.
func (c *copier) program() (*graph.Program, error) {
	b := graph.New(tensor.Float32)
	b.Output(changedOutput, c.apply(b, c.pixels(nil).Input(b, op.Batch{Size: 1}, 1)))
	return b.Compile()
}

func (c *copier) pixels(bytes []byte) samples.Images {
	d := c.data
	return samples.Images{Channels: d.Channels, Height: d.Height, Width: d.Width, Mean: c.mean, Std: c.std, Pixels: bytes}
}

// appendCopies appends the copies of an image. The step that makes a copy is the copy's row, so
// that its random numbers do not depend on what was made before.
func (c *copier) appendCopies(to []byte, session *graph.Session, image int) ([]byte, error) {
	if err := c.pixels(c.data.Image(image)).Write(session); err != nil {
		return nil, err
	}
	values := make([]float32, c.data.ImageSize())
	for k := range c.Copies {
		if err := session.SetStep(0, uint64(image*c.Copies+k)); err != nil {
			return nil, err
		}
		if err := session.Run(1); err != nil {
			return nil, err
		}
		if err := session.ReadFloats(changedOutput, 0, values); err != nil {
			return nil, err
		}
		plane := len(values) / c.data.Channels
		for i, v := range values {
			moment := min(i/plane, len(c.mean)-1) // one for each channel, or for all
			to = append(to, byte(math.Round(255*min(1, max(0, float64(v)*c.std[moment]+c.mean[moment])))))
		}
	}
	return to, nil
}

// rows returns the number of rows of the data that a run is trained on: the images, or their
// copies.
func (t *job) rows() int { return t.data.Len() * t.spec.Augment.copies() }

// rowLabels returns the labels of the rows.
func (t *job) rowLabels() (labels []int32) {
	if t.rows() == t.data.Len() {
		return t.data.Labels
	}
	for _, label := range t.data.Labels {
		labels = append(labels, slices.Repeat([]int32{label}, t.spec.Augment.copies())...)
	}
	return labels
}
