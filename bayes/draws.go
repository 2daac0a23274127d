package bayes

import (
	"path/filepath"
	"sync"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/internal/detector"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/samples"
)

// Draws are the samples that a run, or the parts of a gathered one, had at one moment, in the order
// in which predictions average them: by chain and then by step. Those that WithoutDamaged leaves
// out are not among them.
type Draws struct {
	run    *Run
	files  []rundir.File
	chains []int
	steps  []int
	starts func() (map[string][]float64, error) // see Weights
}

// Draws lists the samples of the run. It is an error if there are none yet.
func (r *Run) Draws() (*Draws, error) {
	files, err := r.intactFiles("draws")
	if err != nil {
		return nil, err
	}
	type chain struct {
		dir    string
		number int
	}
	d, numbers := &Draws{run: r, files: files, starts: sync.OnceValues(r.manifest.Spec.starts)}, map[chain]int{}
	for _, f := range files {
		number, step, err := samples.ParseFileName(f.Path)
		if err != nil {
			return nil, err
		}
		c := chain{filepath.Dir(f.Path), number}
		if _, known := numbers[c]; !known {
			numbers[c] = len(numbers)
		}
		d.chains, d.steps = append(d.chains, numbers[c]), append(d.steps, step)
	}
	return d, nil
}

// Len returns the number of samples.
func (d *Draws) Len() int { return len(d.files) }

// Passes returns how many predictions each sample makes: more than one with Monte Carlo dropout,
// whose predictions differ in their masks.
func (d *Draws) Passes() int { return d.run.passes() }

// Chain returns the number of a sample's chain among all parts' chains, from 0.
func (d *Draws) Chain(i int) int { return d.chains[i] }

// Step returns the number of steps that a sample's chain had made.
func (d *Draws) Step(i int) int { return d.steps[i] }

// Dir returns the directory of the run, or of the part, that drew a sample.
func (d *Draws) Dir(i int) string { return filepath.Dir(filepath.Dir(d.files[i].Path)) }

// Read reads a sample, whose parameters with the prior start: are offsets from the weights of an
// ONNX file. The error is DamagedError if the sample was changed.
func (d *Draws) Read(i int) (samples.Sample, error) { return d.files[i].ReadIntact() }

// Weights reads a sample as the weights of its network: offsets are added to the values of the ONNX
// file. Errors are as for Read.
func (d *Draws) Weights(i int) (samples.Sample, error) {
	s, err := d.Read(i)
	if err != nil {
		return s, err
	}
	starts, err := d.starts()
	if err != nil {
		return s, err
	}
	moveStarts(s, starts, nil)
	return s, nil
}

// Digest returns the digest of the run with these samples, see Run.Digest.
func (d *Draws) Digest() (string, error) { return d.run.digestOf(d.files) }

// Calibration returns the run's calibration, or nil if it has none for these samples.
func (d *Draws) Calibration() (*evaluate.Calibration, error) {
	used := len(d.files) * d.Passes()
	c, err := d.run.calibrationIfAny(used)
	if err == nil && c != nil && c.Samples != used {
		return nil, nil
	}
	return c, err
}

// Detector detects strange images by their features, see FitDetector. Its fields are the members of
// a run's detector.json.
type Detector = detector.Detector

// Detector returns the run's detector of strange images, or nil if it has none for these samples.
func (d *Draws) Detector() (*Detector, error) { return d.run.detectorIfAny(len(d.files)) }

// Stages returns the two stages of a prediction: the frozen part of the network, which maps images
// to vectors and is shared by all samples, and the sampled part. Only networks of ONNX files have a
// frozen part. For others frozen is nil, and sampled reads images.
func (d *Draws) Stages() (frozen layers.Layer, sampled layers.Sequential, err error) {
	p, err := d.run.parts()
	if err != nil || p.frozen == nil {
		return nil, p.network, err
	}
	return p.frozen.Stem, p.network, nil
}

// Labels returns the labels of a data set as numbers of the run's classes, which are matched by
// name. The error is an InvalidError if there are none, or one is of another class.
func (r *Run) Labels(data *datasets.Dataset) ([]int32, error) {
	data, err := r.relabelled(data)
	if err != nil {
		return nil, err
	}
	return data.Labels, nil
}
