package bayes

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/internal/predictive"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/internal/transfer"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// teaching loads the session of a distillation with images, copy by copy, and with the teacher's
// predictions for them. It is a langevin.Hook, which is due before the first step of each epoch. It
// is nil for other methods, for which open and described do nothing.
type teaching struct {
	environment
	dir    string // of the run; "" for trainings that keep nothing
	spec   Spec
	data   *datasets.Dataset // trained on
	images samples.Images    // shape and moments

	// Set by open.
	teacher *Run
	about   *Teacher
	draws   *Draws
	parts   []part // by chain
	loaded  bool

	shares []float64 // see weights
}

// part is what one network learns from: some cycles of the teacher.
type part struct {
	draws interval // of all these cycles
	start interval // of the cycle at whose mean the network starts
}

// interval is a range of draws, with from <= i < to.
type interval struct{ from, to int }

// open opens the teacher, and refuses one that cannot teach the run. Unless before is nil, the
// teacher must equal before, the teacher that the run began with.
func (g *teaching) open(before *Teacher) error {
	if g == nil {
		return nil
	}
	if extra, d := g.unlabelled, g.data; extra != nil && (extra.Channels != d.Channels || extra.Height != d.Height || extra.Width != d.Width) {
		return invalid("distil: %s has images of %dx%dx%d, must have the %dx%dx%d of %s", extra.Name, extra.Channels, extra.Height, extra.Width,
			d.Channels, d.Height, d.Width, d.Name)
	}
	dir := g.spec.Teacher
	teacher, err := Open(dir, WithObserver(g.observe), WithDevice(g.device))
	if errors.As(err, new(*NotARunError)) {
		return &InvalidError{errors.WithMessage(err, "pollen: teacher")}
	}
	if err == nil {
		_, err = teacher.images(g.data)
	}
	if err != nil {
		return errors.WithMessage(err, "pollen: teacher")
	}
	if theirs, ours := teacher.manifest.Data.ClassNames, g.data.ClassNames; !slices.Equal(theirs, ours) {
		return invalid("distil: the classes of %s must be those of %s, %q, got %q", g.data.Name, dir, theirs, ours)
	}
	if above := teacher.manifest.Spec.Teacher; above != "" {
		return invalid("distil: %s is distilled itself: distil its teacher, %s", dir, above)
	}
	about, err := g.describe(teacher)
	switch {
	case err != nil:
		return errors.WithMessage(err, "pollen: teacher")
	case about.Samples < 2:
		return invalid("distil: %s must have at least 2 samples, got %d: one network has no spread to distil", dir, about.Samples)
	case before == nil || *before == *about:
	case before.Unlabelled != about.Unlabelled:
		return invalid("resume %s: the unlabelled images must be those that the run began with, %d images, got %d",
			g.dir, before.UnlabelledImages, about.UnlabelledImages)
	default:
		return invalid("resume %s: its teacher %s has changed since it began: its digest must be %s, got %s", g.dir, dir, before.Digest, about.Digest)
	}
	teacher.undetected = true
	g.teacher, g.about = teacher, about
	return g.divide()
}

// divide divides the teacher's cycles among the networks.
func (g *teaching) divide() (err error) {
	if g.draws, err = g.teacher.Draws(); err != nil {
		return errors.WithMessage(err, "pollen: teacher")
	}
	cycles, n := g.cycles(), g.spec.Chains
	if n > len(cycles) {
		return invalid("distil: networks must be at most %d, the chains of %s times their cycles, got %d", len(cycles), g.spec.Teacher, n)
	}
	g.parts = make([]part, n)
	for i := range g.parts {
		own := cycles[i*len(cycles)/n : (i+1)*len(cycles)/n]
		g.parts[i] = part{interval{own[0].from, own[len(own)-1].to}, own[len(own)/2]}
	}
	return nil
}

// described returns the description of the teacher and the unlabelled images that open has found.
func (g *teaching) described() *Teacher {
	if g == nil {
		return nil
	}
	return g.about
}

// describe returns the description of the teacher and the unlabelled images.
func (g *teaching) describe(teacher *Run) (*Teacher, error) {
	files, err := teacher.intactFiles("distil")
	if err != nil {
		return nil, err
	}
	m := teacher.manifest
	about := &Teacher{Samples: len(files) * teacher.passes(), Method: MethodText(m.Spec.Method), Network: m.NetworkName()}
	if about.Digest, err = teacher.digestOf(files); err != nil {
		return nil, err
	}
	if g.unlabelled != nil {
		about.Unlabelled, about.UnlabelledImages = contentHash(g.unlabelled), g.unlabelled.Len()
	}
	return about, nil
}

// starts reports whether start returns weights.
func (g *teaching) starts() bool { return g != nil && g.spec.Method.(Distillation).Networks > 0 }

// rewind prepares for a training that is made again from step 0: OnStep then loads the targets of
// the first copy of the images.
func (g *teaching) rewind() {
	if g != nil {
		g.loaded = false
	}
}

// start returns the initial weights of the chains, which are means of the teacher's samples; nil
// without Distillation.Networks.
func (g *teaching) start() (starts []samples.Sample, err error) {
	if !g.starts() {
		return nil, nil
	}
	for _, p := range g.parts {
		var mean predictive.Mean
		if err := g.each(p.start, mean.Add); err != nil {
			return nil, err
		}
		starts = append(starts, mean.Sample())
	}
	return starts, nil
}

// weights returns the weight of the samples that each network learns from. It reads the samples
// once.
func (g *teaching) weights() ([]float64, error) {
	if g.shares != nil {
		return g.shares, nil
	}
	if len(g.parts) == 1 {
		return []float64{1}, nil
	}
	shares := make([]float64, len(g.parts))
	for i, p := range g.parts {
		err := g.each(p.draws, func(s samples.Sample) error {
			shares[i] += s.Weight
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	g.shares = shares
	return shares, nil
}

// each reads some of the teacher's samples.
func (g *teaching) each(of interval, use func(samples.Sample) error) error {
	for at := of.from; at < of.to; at++ {
		sample, err := g.draws.Read(at)
		if err == nil {
			err = use(sample)
		}
		if err != nil {
			return errors.WithMessage(err, "pollen: teacher")
		}
	}
	return nil
}

// cycles returns the teacher's draws by chain and, within each, by cycle.
func (g *teaching) cycles() (groups []interval) {
	draws := g.draws
	plan := langevin.Plan{Steps: g.teacher.manifest.Steps, Cycles: g.teacher.manifest.Spec.Cycles}
	same := func(i, j int) bool {
		return draws.Dir(i) == draws.Dir(j) && draws.Chain(i) == draws.Chain(j) && plan.CycleAt(draws.Step(i)) == plan.CycleAt(draws.Step(j))
	}
	for i := range draws.Len() {
		if i > 0 && same(i-1, i) {
			groups[len(groups)-1].to = i + 1
		} else {
			groups = append(groups, interval{i, i + 1})
		}
	}
	return groups
}

// copyAt returns the number, from 0, of the copy of the images that a step uses.
func (g *teaching) copyAt(step int) int {
	return step * g.spec.Batch / g.data.Len() % g.spec.Method.(Distillation).Copies
}

// Due implements langevin.Hook. A training that keeps nothing only makes a few steps to time them,
// for which any targets do.
func (g *teaching) Due(step int) bool {
	return g.dir != "" && (!g.loaded || g.copyAt(step) != g.copyAt(step-1))
}

// OnStep implements langevin.Hook.
func (g *teaching) OnStep(ctx context.Context, s *graph.Session) error {
	number := g.copyAt(int(s.Steps()))
	images := g.images
	images.Pixels = g.pool().Copy(g.data.Len(), number, g.spec.Seed)
	means, precisions, err := g.targets(ctx, number, images.Pixels)
	if err != nil {
		return err
	}
	g.loaded = true
	labels := g.labels(means)
	return cmp.Or(images.Write(s), graph.Write(s, labelsInput, 0, 0, labels),
		s.WriteFloats(meansInput, 0, means), s.WriteFloats(precisionsInput, 0, precisions))
}

// pool returns the images trained on, followed by the unlabelled ones.
func (g *teaching) pool() transfer.Pool {
	d, n := g.data, g.data.Len()
	p := transfer.Pool{Channels: d.Channels, Height: d.Height, Width: d.Width, Len: n, Image: d.Image}
	if extra := g.unlabelled; extra != nil {
		p.Len += extra.Len()
		p.Image = func(i int) []byte {
			if i >= n {
				return extra.Image(i - n)
			}
			return d.Image(i)
		}
	}
	return p
}

// targetsDir returns the directory of the teacher's predictions.
func (g *teaching) targetsDir() string { return filepath.Join(g.dir, rundir.TargetsDir) }

// targets returns the targets for a copy of the images: means [N MK], and logarithms of precisions
// [N M]. They are kept on the disk until the run is finished, since the teacher takes long to
// compute them.
func (g *teaching) targets(ctx context.Context, number int, pixels []byte) (means, precisions []float32, err error) {
	path := filepath.Join(g.targetsDir(), samples.FileName(0, number))
	kept, err := samples.ReadSample(path)
	n, classes, networks := g.data.Len(), g.data.Classes, len(g.parts)
	switch {
	case err == nil && len(kept.Parameters) == 2 && len(kept.Parameters[0].Values) == n*networks*classes && len(kept.Parameters[1].Values) == n*networks:
		return kept.Parameters[0].Values, kept.Parameters[1].Values, nil
	case !os.IsNotExist(errors.Cause(err)):
		g.remark(fmt.Sprintf("%s is damaged: the teacher predicts these images again", path))
	}
	images := *g.data
	images.Images, images.Labels = pixels, nil
	images.Name = fmt.Sprintf("copy %d of %d of %s", number+1, g.spec.Method.(Distillation).Copies, g.data.Name)
	byPart, err := g.predict(ctx, &images)
	if err != nil {
		return nil, nil, errors.WithMessage(err, "pollen: teacher")
	}
	means, precisions = make([]float32, n*networks*classes), make([]float32, n*networks)
	for part, predictions := range byPart {
		for i, information := range predictions.MutualInformation {
			p, row := predictions.Probabilities[i*classes:(i+1)*classes], i*networks+part
			for k, v := range p {
				means[row*classes+k] = float32(v)
			}
			precisions[row] = float32(math.Log(evaluate.DirichletPrecision(p, information)))
		}
	}
	if err := file.MakeDir(g.targetsDir()); err != nil {
		return nil, nil, errors.Wrap(err, "pollen: distil")
	}
	return means, precisions, samples.NewStore(g.targetsDir()).Add(samples.Sample{Step: number, Weight: 1, Parameters: []samples.Parameter{
		{Name: meansInput, Shape: tensor.Shape{n, networks * classes}, Values: means},
		{Name: precisionsInput, Shape: tensor.Shape{n, networks}, Values: precisions},
	}})
}

// predict returns what the samples of each part predict for images.
func (g *teaching) predict(ctx context.Context, images *datasets.Dataset) (byPart []*evaluate.Predictions, err error) {
	averages := make([]*evaluate.Predictive, len(g.parts))
	for i := range averages {
		if averages[i], err = evaluate.NewPredictive(images.Len(), images.Classes); err != nil {
			return nil, err
		}
	}
	part, predicted := 0, 0
	_, err = g.teacher.Predictions(ctx, images, func(probabilities []float32, weight float64) error {
		if predicted == g.draws.Passes()*g.parts[part].draws.to {
			part++
		}
		predicted++
		return averages[part].Add(probabilities, weight)
	})
	if err != nil {
		return nil, err
	}
	for _, a := range averages {
		byPart = append(byPart, a.Predictions(images.Name, nil))
	}
	return byPart, nil
}

// labels returns the classes of the largest of the means [N MK], summed over networks. With them as
// labels, the accuracy of a minibatch is the agreement with the teacher.
func (g *teaching) labels(means []float32) []int32 {
	labels, classes := make([]int32, g.data.Len()), g.data.Classes
	sums := make([]float32, classes)
	for i := range labels {
		clear(sums)
		for j, p := range means[i*len(g.parts)*classes : (i+1)*len(g.parts)*classes] {
			sums[j%classes] += p
		}
		labels[i] = int32(slices.Index(sums, slices.Max(sums)))
	}
	return labels
}
