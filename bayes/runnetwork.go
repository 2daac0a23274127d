package bayes

import (
	"os"
	"path/filepath"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// Network returns the trained network, from images to logits. The error is DamagedError if it has
// more parameters than the run.
func (r *Run) Network() (layers.Sequential, error) {
	if _, err := r.parts(); err != nil {
		return nil, err
	}
	return r.manifest.Spec.Build(r.manifest.Data.Classes())
}

// parts returns the stages of the network's predictions, and the errors of Network.
func (r *Run) parts() (parts, error) {
	p, err := r.manifest.Spec.parts(r.shape(), r.manifest.Data.Classes())
	if err != nil {
		return p, err
	}
	return p, r.checkParameters(p)
}

// checkParameters refuses a network with more parameters than the run and its largest sample have,
// before memory is allocated for it.
func (r *Run) checkParameters(p parts) error {
	limit, made := r.manifest.Parameters, 0
	largest, size := r.largestSample()
	if size > 0 {
		limit = min(limit, int(size/4)) // they are float32
	}
	// A manifest that a stranger wrote may name a network with billions of weights. Building a
	// graph allocates none of them, and this hook stops it at the first parameter that is too many.
	var excess error
	b := graph.New(tensor.Float32)
	b.Hooks.Parameter = func(name string, initialize graph.Initializer, shape ...int) *graph.Node {
		if s := tensor.Shape(shape); s.Validate() != nil || s.Elements() > limit-made {
			excess = errors.Errorf("the network has more parameters than the %d of the run's samples", limit)
			b.Fail(excess)
			return nil
		}
		made += tensor.Shape(shape).Elements()
		return b.Parameter(name, initialize, shape...)
	}
	p.network.Apply(b, b.Data("input", tensor.Float32, append([]int{1}, p.inputs().Shape()...)...))
	if excess == nil {
		return nil // any other error is reported where the network is used
	}
	if _, _, err := samples.ReadWithChecksum(largest); size > 0 && err != nil { // cut, like the others
		if r.withoutDamaged {
			return errors.Errorf("pollen: all samples of %s are damaged", r.dir)
		}
		return errors.WithStack(&DamagedError{File: largest, Cause: err})
	}
	return errors.WithStack(&DamagedError{File: filepath.Join(r.dir, rundir.ManifestFile), Cause: excess})
}

// largestSample returns the path and the size in bytes of the largest sample of the run, or of its
// first part; 0 if there is none.
func (r *Run) largestSample() (path string, size int64) {
	dir := append(r.places(), r.dir)[0]
	files, err := samples.NewStore(filepath.Join(dir, rundir.SamplesDir)).Files()
	if err != nil {
		return "", 0 // which is reported where the samples are used
	}
	for _, file := range files {
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Size() > size {
			path, size = file, info.Size()
		}
	}
	return path, size
}

// finite returns the samples whose predictions are finite. Any other sample is a DamagedError,
// unless damaged samples may be left out.
func (r *Run) finite(files []rundir.File, p parts) (finite []rundir.File, err error) {
	err = r.on(func(device tensor.Device) error {
		probe, err := samples.NewProbe(device, p.inputs(), p.network.Apply)
		if err != nil {
			return err
		}
		defer probe.Close()
		for _, f := range files {
			sample, err := f.ReadIntact()
			if err != nil {
				return err
			}
			err = probe.Check(sample)
			if err == nil {
				finite = append(finite, f)
				continue
			}
			if isNotFinite(err) {
				err = r.reader().Skip(f.Path, err)
			}
			if err != nil {
				return err
			}
		}
		if len(finite) == 0 {
			return errors.Errorf("pollen: predictor: no sample of %s can be used", r.dir)
		}
		return nil
	})
	return finite, err
}

// maxProbed is the maximum number of values of an image for which Verify makes predictions: with
// larger images, which few runs have, it would need much memory.
const maxProbed = 1 << 22

// prober returns a function that checks whether samples of the run predict finite probabilities,
// and one that frees its memory.
func (r *Run) prober() (check func(samples.Sample) error, end func(), err error) {
	d := &r.manifest.Data
	if d.Channels > maxProbed || d.Height > maxProbed/d.Channels || d.Width > maxProbed/d.Channels/d.Height {
		return nil, nil, errors.Errorf("images of %dx%dx%d are too large", d.Channels, d.Height, d.Width)
	}
	p, err := r.parts()
	if err != nil {
		return nil, nil, err
	}
	host := tensor.NewHost(0)
	probe, err := samples.NewProbe(host, p.inputs(), p.network.Apply)
	if err != nil {
		host.Close()
		return nil, nil, err
	}
	return probe.Check, func() {
		probe.Close()
		host.Close()
	}, nil
}
