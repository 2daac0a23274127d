package bayes

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/internal/llckept"
	"github.com/pollen-ml/pollen/internal/measure"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/langevin/llc"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// LearningCoefficient estimates the local learning coefficient of the run's network at one of its
// samples, see package llc. data are the training images of the run; L is the mean loss on them,
// with the class weights of the run, but without its prior, its augmentation and its dropout.
// sample is the file name of a sample, such as "chain-0000-step-00004800.safetensors"; "" is the
// last one of the first chain. Options.Observe, Kept and Keep are not used: progress goes to the
// run's observer, and the run's directory keeps each complete descent and row, so that another call
// with the same options continues after them.
//
// If ctx ends, LearningCoefficient returns what has been estimated so far, nil if that is nothing,
// with the context's error. Other errors are as for Open, InvalidError for options, data and
// samples that do not fit, and MemoryError.
func (r *Run) LearningCoefficient(ctx context.Context, data *datasets.Dataset, sample string, o llc.Options) (*llc.Estimation, error) {
	if err := checkContext(ctx, "llc"); err != nil {
		return nil, err
	}
	if data == nil {
		return nil, invalid("llc: no training images")
	}
	if _, err := r.parts(); err != nil {
		return nil, err
	}
	source, centre, err := r.sampleNamed(sample)
	if err != nil {
		return nil, err
	}
	t, err := newTraining(r.manifest.Spec, data, "", r.environment)
	if err != nil {
		return nil, err
	}
	if !r.manifest.Data.isOf(t.data) {
		return nil, invalid("llc: the data %s are not those that %s was trained on", data.Name, r.dir)
	}
	o.Observe = func(p llc.Progress) {
		r.observe(Event{Task: p.Task, On: data.Name, Done: p.Done, Total: p.Total, Images: p.Images})
	}
	var e *llc.Estimation
	err = r.on(func(device tensor.Device) error {
		var err error
		if t.inputs, err = t.features(ctx, device, t.data.Images); err != nil {
			return err
		}
		m := t.learningModel(centre.Parameters)
		if err := r.checkLearningModel(device, m, o); err != nil {
			return err
		}
		r.remark(llc.Describe(t.data.Len(), o))
		if source.Sum == "" {
			r.remark("step sizes are not kept for another call: the run's index is damaged")
		} else {
			settings := o.Settings(t.data.Len())
			settings["sample"] = filepath.Base(source.Path) + " " + source.Sum
			if err := llckept.Keep(&o, filepath.Join(r.dir, rundir.LLCDir), settings, r.remark); err != nil {
				return err
			}
		}
		e, err = llc.Estimate(ctx, device, m, o)
		return err
	})
	return e, err
}

// learningModel returns the model whose learning coefficient is estimated: the loss of each example
// of a minibatch, -log p(label), as a node of a graph, and the data that it reads. There is no
// dropout, because the coefficient describes a function of the weights only.
func (t *training) learningModel(centre []samples.Parameter) llc.Model {
	n := t.data.Len()
	return llc.Model{
		DataSize: n,
		Centre:   centre,
		Losses: func(b *graph.Builder, batch op.Batch) *graph.Node {
			b.Mode = graph.Prediction
			logits := t.parts.network.Apply(b, t.inputs.Input(b, batch, n))
			labels := b.Apply(op.GatherLabels{Batch: batch}, b.Data(labelsInput, tensor.Int32, n), b.Header())
			losses := b.Apply(op.Negate{}, b.Apply(op.LogProbability{}, logits, labels))
			if t.classWeights != nil {
				losses = b.Apply(op.Multiply{}, losses, measure.GatherWeights(b, batch, n))
			}
			return losses
		},
		Write: func(s *graph.Session) error { return t.give(s, t.inputs, t.data.Labels) },
	}
}

// checkLearningModel returns an InvalidError for options that do not fit the model, and a
// MemoryError if the chains need more memory than is available.
func (r *Run) checkLearningModel(device tensor.Device, m llc.Model, o llc.Options) error {
	size, err := llc.Size(device, m, o)
	if err != nil {
		return &InvalidError{err}
	}
	return checkSession(device, "pollen: llc: "+r.dir, size, "fewer chains", "smaller batches")
}

// sampleNamed returns the sample with a file name; "" is the last sample of the first chain.
func (r *Run) sampleNamed(name string) (f rundir.File, s samples.Sample, err error) {
	files, err := r.sampleFiles("llc")
	if err != nil {
		return f, s, err
	}
	// Files are sorted by directory, chain and step, so that the last match is the last sample. A
	// gathered run has files of several directories; the default takes the first.
	var found *rundir.File
	first := 0
	for i, f := range files {
		chain, _, err := samples.ParseFileName(f.Path)
		if err != nil {
			return f, s, err
		}
		if i == 0 {
			first = chain
		}
		if name == "" && chain == first && filepath.Dir(f.Path) == filepath.Dir(files[0].Path) || filepath.Base(f.Path) == filepath.Base(name) {
			found = &files[i]
		}
	}
	if found == nil {
		var some []string
		for _, f := range files[:min(3, len(files))] {
			some = append(some, filepath.Base(f.Path))
		}
		return f, s, invalid("llc: sample %s: %s has no such sample; it has %d, such as %s", name, r.dir, len(files), strings.Join(some, ", "))
	}
	s, err = found.Read()
	return *found, s, errors.WithMessage(err, "pollen: llc")
}
