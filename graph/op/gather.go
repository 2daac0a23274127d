package op

import (
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
	"github.com/pollen-ml/pollen/tensor/random"
)

// Batch selects the Size examples of a data set that a step sees, in an Order. No state is kept: a
// step number determines its examples, which makes resuming exact.
type Batch struct {
	Size  int
	Order Order
}

// Order is the order in which steps visit the examples of a data set. Except for Independent,
// example i of step t is at position p = t*Size + i of an endless sequence of epochs, each of which
// visits every example once. A batch may straddle two epochs.
type Order int

const (
	// Sequential is the order of the data set, in every epoch.
	Sequential Order = iota
	// Shuffled is a pseudorandom permutation keyed by (seed, chain, epoch).
	Shuffled
	// Symmetric is Shuffled, except that every second epoch visits the examples of the one before
	// in reverse, as symmetric minibatch integrators need.
	Symmetric
	// Independent has no epochs: each step draws its examples from all, without replacement, by a
	// permutation keyed by (seed, chain, step), so that the loss of a minibatch is an unbiased
	// estimate at parameters that earlier steps have moved.
	Independent
)

func (s Batch) check(examples int) error {
	if s.Order < Sequential || s.Order > Independent {
		return errors.Errorf("order must be %d to %d, got %d", Sequential, Independent, s.Order)
	}
	if s.Size < 1 || s.Size > examples {
		return errors.Errorf("batch must be 1 to %d, the examples of the data set, got %d", examples, s.Size)
	}
	return nil
}

// whole reports whether every step sees all examples of the data set, the first input, in its
// order. Gathering then yields the data set itself.
func (s Batch) whole(in []tensor.Shape) bool {
	return s.Order == Sequential && len(in) > 0 && len(in[0]) > 0 && in[0][0] == s.Size
}

// BatchOf returns the batch of an op that gathers examples. ok is false for other ops.
func BatchOf(o graph.Op) (batch Batch, ok bool) {
	switch o := o.(type) {
	case GatherImages:
		return o.Batch, true
	case GatherLabels:
		return o.Batch, true
	case GatherRows:
		return o.Batch, true
	}
	return Batch{}, false
}

// forEach calls visit(i, example) for rows lo to hi of the batch of the header's step.
func (s Batch) forEach(header []uint64, examples, lo, hi int, visit func(i, example int)) {
	n := uint64(examples)
	var order random.Order
	have := ^uint64(0)
	for i := lo; i < hi; i++ {
		position := header[graph.HeaderStep]*uint64(s.Size) + uint64(i)
		epoch, example := position/n, position%n
		if s.Order == Independent {
			epoch, example = header[graph.HeaderStep], uint64(i)
		}
		if s.Order != Sequential {
			if s.Order == Symmetric && epoch%2 == 1 {
				epoch, example = epoch-1, n-1-example
			}
			if epoch != have {
				order = random.NewOrder(n, header[graph.HeaderSeed], uint32(header[graph.HeaderChain]), epoch)
				have = epoch
			}
			example = order.At(example)
		}
		visit(i, int(example))
	}
}

// maxChannels is the maximum number of channels with different moments.
const maxChannels = 4

// Channels holds a number for each channel of an image, or one for all channels; see ChannelsOf. It
// is an array, not a slice, so that ops which contain it are comparable.
type Channels struct {
	count  int
	values [maxChannels]float64
}

// ChannelsOf returns Channels with one number for all channels, or with a number for each of up to
// 4 channels.
func ChannelsOf(values ...float64) Channels {
	c := Channels{count: len(values)}
	copy(c.values[:], values)
	return c
}

// At returns the number of a channel.
func (c Channels) At(channel int) float64 {
	if c.count == 1 {
		return c.values[0]
	}
	return c.values[channel]
}

// check returns an error unless there is one number, or one for each of the images' channels.
func (c Channels) check(channels int) error {
	if c.count != 1 && (c.count != channels || channels > maxChannels) {
		return errors.Errorf("moments must be 1, or one for each channel and at most %d, got %d for %d channels", maxChannels, c.count, channels)
	}
	return nil
}

// GatherImages copies a step's images from a data set of bytes and normalises each channel c:
// images [N C H W] uint8, header -> y [B C H W],
//
//	y = (x/255 - Mean[c]) / Std[c]
//
// The data set stays on the device, so that a step needs no transfer.
type GatherImages struct {
	Batch     Batch
	Mean, Std Channels // of pixel/255
}

// Name implements graph.Op.
func (GatherImages) Name() string { return "gather images" }

// InputType implements graph.Mixed.
func (GatherImages) InputType(i int) tensor.DType {
	return [...]tensor.DType{tensor.Uint8, tensor.Uint64}[i]
}

// Shape implements graph.Op.
func (g GatherImages) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkRanks(in, 4, 1); err != nil {
		return nil, err
	}
	for _, moments := range []Channels{g.Mean, g.Std} {
		if err := moments.check(in[0][1]); err != nil {
			return nil, err
		}
	}
	for channel := range g.planes() {
		if mean, std := g.Mean.At(channel), g.Std.At(channel); !(std > 0) || std > math.MaxFloat64 || mean-mean != 0 {
			return nil, errors.Errorf("mean and standard deviation of channel %d must be finite, and the latter positive, got %v and %v", channel, mean, std)
		}
	}
	return tensor.Shape{g.Batch.Size, in[0][1], in[0][2], in[0][3]}, g.Batch.check(in[0][0])
}

// planes returns the number of parts of an image with different moments: its channels, or 1.
func (g GatherImages) planes() int { return max(g.Mean.count, g.Std.count) }

// affine returns the factors with which y = scale x + shift normalises a byte x.
func (g GatherImages) affine(channel int) (scale, shift float64) {
	mean, std := g.Mean.At(channel), g.Std.At(channel)
	return 1 / (255 * std), -mean / std
}

// Lower implements graph.Op. The kernel always takes maxChannels pairs of scale and shift; the last
// channel's are repeated.
func (g GatherImages) Lower(l *graph.Lowering) {
	examples := l.Shapes[0][0]
	pixels := l.Shape.Elements() / g.Batch.Size
	run := graph.Pick(l, gatherImages[float32](g, examples), gatherImages[float64](g, examples))
	arguments := []tensor.Argument{
		l.Out(), l.In(0), l.In(1), tensor.Int(examples), tensor.Int(g.Batch.Size), tensor.Int(pixels),
		tensor.Int(int(g.Batch.Order)), tensor.Int(pixels / g.planes()),
	}
	for channel := range maxChannels {
		scale, shift := g.affine(min(channel, g.planes()-1))
		arguments = append(arguments, tensor.Float(l.DType, scale), tensor.Float(l.DType, shift))
	}
	l.Emit("gather_images", gatherGrid(g.Batch.Size, pixels), tensor.Rows(g.Batch.Size, pixels, run), arguments...)
}

// gatherImages copies pixels of the images of a minibatch, normalised by (x - mean)/std in each
// channel.
func gatherImages[T float32 | float64](g GatherImages, examples int) func(a *tensor.Args, lo, hi int) {
	var scales, shifts [maxChannels]T
	for channel := range g.planes() {
		scale, shift := g.affine(channel)
		scales[channel], shifts[channel] = T(scale), T(shift)
	}
	return func(a *tensor.Args, lo, hi int) {
		y, images, header := tensor.Slice[T](a, 0), tensor.Slice[uint8](a, 1), tensor.Slice[uint64](a, 2)
		pixels := len(images) / examples
		plane := pixels / g.planes()
		g.Batch.forEach(header, examples, lo, hi, func(i, example int) {
			to, from := y[i*pixels:(i+1)*pixels], images[example*pixels:(example+1)*pixels]
			for c := range g.planes() {
				kernel.ScaleBytes(to[c*plane:(c+1)*plane], from[c*plane:(c+1)*plane], scales[c], shifts[c])
			}
		})
	}
}

// GatherLabels copies a step's labels from a data set: labels [N] int32, header -> [B] int32. With
// the same Batch they belong to the images of GatherImages. If a step sees all examples in order,
// they are the data set's labels themselves, without a copy.
type GatherLabels struct {
	Batch Batch
}

// Name implements graph.Op.
func (GatherLabels) Name() string { return "gather labels" }

// View implements graph.Viewer.
func (g GatherLabels) View(in []tensor.Shape) bool { return g.Batch.whole(in) }

// DType implements graph.Typed.
func (GatherLabels) DType() tensor.DType { return tensor.Int32 }

// InputType implements graph.Mixed.
func (GatherLabels) InputType(i int) tensor.DType {
	return [...]tensor.DType{tensor.Int32, tensor.Uint64}[i]
}

// Shape implements graph.Op.
func (g GatherLabels) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkRanks(in, 1, 1); err != nil {
		return nil, err
	}
	return tensor.Shape{g.Batch.Size}, g.Batch.check(in[0][0])
}

// Lower implements graph.Op.
func (g GatherLabels) Lower(l *graph.Lowering) {
	run := func(a *tensor.Args) {
		y, labels, header := tensor.Slice[int32](a, 0), tensor.Slice[int32](a, 1), tensor.Slice[uint64](a, 2)
		g.Batch.forEach(header, len(labels), 0, len(y), func(i, example int) { y[i] = labels[example] })
	}
	l.Emit("gather_labels", tensor.Threads(g.Batch.Size), tensor.Single(run), l.Out(), l.In(0), l.In(1),
		tensor.Int(l.Shapes[0][0]), tensor.Int(g.Batch.Size), tensor.Int(int(g.Batch.Order)))
}

// StoreRows copies the rows computed for a step's examples into a state with a row for each
// example: rows [B K], store [N K], header -> the number of rows, a scalar. The batch must not be
// shuffled; after ceil(N/B) steps all rows are stored.
type StoreRows struct {
	Batch Batch
}

// Name implements graph.Op.
func (StoreRows) Name() string { return "store rows" }

// Updates implements graph.Updater.
func (StoreRows) Updates() []int { return []int{1} }

// InputType implements graph.Mixed.
func (StoreRows) InputType(i int) tensor.DType { return [...]tensor.DType{2: tensor.Uint64}[i] }

// Shape implements graph.Op.
func (s StoreRows) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkRanks(in, 2, 2, 1); err != nil {
		return nil, err
	}
	if s.Batch.Order != Sequential || in[0][0] != s.Batch.Size || in[0][1] != in[1][1] {
		return nil, errors.Errorf("rows must be [%d K] of a Sequential batch, and the store [N K], got order %d and shapes %v and %v",
			s.Batch.Size, s.Batch.Order, in[0], in[1])
	}
	return tensor.Shape{}, s.Batch.check(in[1][0])
}

// Lower implements graph.Op.
func (s StoreRows) Lower(l *graph.Lowering) {
	examples, width := l.Shapes[1][0], l.Shapes[1][1]
	run := graph.Pick(l, storeRows[float32](s, examples, width), storeRows[float64](s, examples, width))
	l.Emit("store_rows", tensor.Threads(s.Batch.Size*width), tensor.Single(run), l.Out(), l.In(0), l.InOut(1), l.In(2),
		tensor.Int(examples), tensor.Int(s.Batch.Size), tensor.Int(width))
}

func storeRows[T float32 | float64](s StoreRows, examples, width int) func(a *tensor.Args) {
	return func(a *tensor.Args) {
		rows, store, header := tensor.Slice[T](a, 1), tensor.Slice[T](a, 2), tensor.Slice[uint64](a, 3)
		s.Batch.forEach(header, examples, 0, s.Batch.Size, func(i, example int) {
			copy(store[example*width:(example+1)*width], rows[i*width:])
		})
		tensor.Slice[T](a, 0)[0] = T(s.Batch.Size)
	}
}

// Minibatch makes the inputs "images" [N C H W] uint8 and "labels" [N] int32 of a data set, and
// returns the nodes of each step's examples: images [B C H W], normalised by the mean and standard
// deviation of pixel/255 in each channel (or one of each for all channels), and labels [B].
func Minibatch(b *graph.Builder, batch Batch, images tensor.Shape, mean, std []float64) (x, labels *graph.Node) {
	if len(images) != 4 {
		b.Fail(errors.Errorf("op: minibatch: images must have shape [N C H W], got %v", images))
		return nil, nil
	}
	pixels := b.Data("images", tensor.Uint8, images...)
	classes := b.Data("labels", tensor.Int32, images[0])
	return NormalizedImages(b, batch, pixels, mean, std), b.Apply(GatherLabels{Batch: batch}, classes, b.Header())
}

// NormalizedImages returns the images that a batch selects from pixels [N C H W] uint8, normalised
// as by GatherImages, but with any number of channels: more than 4 have ops of their own.
func NormalizedImages(b *graph.Builder, batch Batch, pixels *graph.Node, mean, std []float64) *graph.Node {
	if len(mean) <= maxChannels || len(std) != len(mean) {
		return b.Apply(GatherImages{Batch: batch, Mean: ChannelsOf(mean...), Std: ChannelsOf(std...)}, pixels, b.Header())
	}
	x := b.Apply(GatherImages{Batch: batch, Mean: ChannelsOf(0), Std: ChannelsOf(1)}, pixels, b.Header())
	factors, offsets := make([]float64, len(mean)), make([]float64, len(mean))
	for c := range factors {
		factors[c], offsets[c] = 1/std[c], -mean[c]/std[c]
	}
	return ScaleChannels(b, "moments", x, factors, offsets)
}

// ScaleChannels returns x*factor + offset, with a factor and an offset for each channel of x
// [B C H W]. They are tables, whose names begin with the given one.
func ScaleChannels(b *graph.Builder, name string, x *graph.Node, factors, offsets []float64) *graph.Node {
	table := func(of string, values []float64) *graph.Node {
		return b.Apply(ViewAs(1, len(values), 1, 1), b.Cast(b.Table(name+" "+of, values)))
	}
	return b.Apply(Add{}, b.Apply(Multiply{}, x, table("factors", factors)), table("offsets", offsets))
}
