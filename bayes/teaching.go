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
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/internal/transfer"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
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

	teacher *Run // nil before open
	about   *Teacher
	loaded  bool
}

// open opens the teacher, and refuses one that cannot teach the run. It compares the teacher with
// the one that the run began with, unless before is nil.
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
		return &InvalidError{errors.WithMessage(err, "teacher")}
	}
	if err == nil {
		_, err = teacher.images(g.data)
	}
	if err != nil {
		return errors.WithMessage(err, "teacher")
	}
	if theirs, ours := teacher.manifest.Data.ClassNames, g.data.ClassNames; !slices.Equal(theirs, ours) {
		return invalid("distil: the classes of %s must be those of %s, %q, got %q", g.data.Name, dir, theirs, ours)
	}
	about, err := g.describe(teacher)
	switch {
	case err != nil:
		return errors.WithMessage(err, "teacher")
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
	kind, err := kindOf(m.Spec.Method)
	if err != nil {
		return nil, err
	}
	about := &Teacher{Samples: len(files) * kind.passes(&m.Spec), Method: MethodText(m.Spec.Method), Network: m.Spec.NetworkName()}
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

// start returns the initial weights of the copies of the teacher's network, which are means of the
// teacher's samples; nil without Distillation.Networks.
func (g *teaching) start() (*samples.Sample, error) {
	if !g.starts() {
		return nil, nil
	}
	n := g.spec.Method.(Distillation).Networks
	draws, err := g.teacher.Draws()
	if err != nil {
		return nil, errors.WithMessage(err, "teacher")
	}
	groups := g.cycles(draws)
	if n > len(groups) {
		return nil, invalid("distil: networks must be at most %d, the chains of %s times their cycles, got %d", len(groups), g.spec.Teacher, n)
	}
	all := &samples.Sample{}
	for i := range n {
		var mean sampleMean
		group := groups[(2*i+1)*len(groups)/(2*n)]
		for at := group.from; at < group.to; at++ {
			sample, err := draws.Read(at)
			if err == nil {
				err = mean.add(sample)
			}
			if err != nil {
				return nil, errors.WithMessage(err, "teacher")
			}
		}
		for _, p := range mean.sample().Parameters {
			if n > 1 {
				p.Name = layers.CopyPrefix(i+1) + p.Name
			}
			all.Parameters = append(all.Parameters, p)
		}
	}
	return all, nil
}

// interval is a range of draws, with from <= i < to.
type interval struct{ from, to int }

// cycles returns the teacher's draws by chain and, within each, by cycle.
func (g *teaching) cycles(draws *Draws) (groups []interval) {
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
	// With the teacher's class as the label, the accuracy of a minibatch is the agreement with it.
	labels, classes := make([]int32, g.data.Len()), g.data.Classes
	for i := range labels {
		row := means[i*classes : (i+1)*classes]
		labels[i] = int32(slices.Index(row, slices.Max(row)))
	}
	g.loaded = true
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

// targets returns the target for a copy of the images: means [N K], and logarithms of precisions
// [N]. They are kept on the disk until the run is finished, since the teacher takes long to compute
// them.
func (g *teaching) targets(ctx context.Context, number int, pixels []byte) (means, precisions []float32, err error) {
	path := filepath.Join(g.targetsDir(), samples.FileName(0, number))
	kept, err := samples.ReadSample(path)
	n, classes := g.data.Len(), g.data.Classes
	switch {
	case err == nil && len(kept.Parameters) == 2 && len(kept.Parameters[0].Values) == n*classes && len(kept.Parameters[1].Values) == n:
		return kept.Parameters[0].Values, kept.Parameters[1].Values, nil
	case !os.IsNotExist(errors.Cause(err)):
		g.remark(fmt.Sprintf("%s is damaged: the teacher predicts these images again", path))
	}
	images := *g.data
	images.Images, images.Labels = pixels, nil
	images.Name = fmt.Sprintf("copy %d of %d of %s", number+1, g.spec.Method.(Distillation).Copies, g.data.Name)
	predictions, err := g.teacher.Predictions(ctx, &images, nil)
	if err != nil {
		return nil, nil, errors.WithMessage(err, "teacher")
	}
	means, precisions = make([]float32, n*classes), make([]float32, n)
	for i, p := range predictions.Probabilities {
		means[i] = float32(p)
	}
	for i, information := range predictions.MutualInformation {
		precisions[i] = float32(math.Log(evaluate.DirichletPrecision(predictions.Probabilities[i*classes:(i+1)*classes], information)))
	}
	if err := file.MakeDir(g.targetsDir()); err != nil {
		return nil, nil, errors.Wrap(err, "pollen: distil")
	}
	return means, precisions, samples.NewStore(g.targetsDir()).Add(samples.Sample{Step: number, Weight: 1, Parameters: []samples.Parameter{
		{Name: meansInput, Shape: tensor.Shape{n, classes}, Values: means}, {Name: precisionsInput, Shape: tensor.Shape{n, 1}, Values: precisions},
	}})
}
