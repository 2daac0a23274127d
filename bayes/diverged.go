package bayes

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// diverged returns a DivergedError for an error of numbers that are not finite, and other errors as
// they are.
func (t *training) diverged(err error) error {
	if !isNotFinite(err) {
		return err
	}
	if t.warmUp != nil && !t.warmUp.done {
		advice := "another warm-start or network"
		if optimizers.UsesRates(t.spec.WarmStart) {
			advice = "smaller learning rates of the warm start (warm-schedule)"
		}
		return &DivergedError{MethodName(t.spec.WarmStart), advice, err}
	}
	advice := "another network or method"
	if t.kind.traits().rated {
		advice = "smaller learning rates (schedule), or with the method auto, which finds one"
	}
	return &DivergedError{MethodName(t.spec.Method), advice, err}
}

// newProbe loads the probe that samples must pass before they are kept.
func (t *training) newProbe(device tensor.Device) (err error) {
	t.probe, err = samples.NewProbe(device, t.predicted.inputs(), t.predicted.network.Apply)
	return err
}

// checkStart refuses a sample of another run to start from, as it is in a chain now, that does not
// predict finite probabilities.
func (t *training) checkStart(chain int, s samples.Sample) error {
	state, err := samples.FromSession(t.session, chain, 1) // in the order of this network's parameters
	if err != nil {
		return err
	}
	state.Chain, state.Step = s.Chain, s.Step
	if err := t.probe.Check(state); err != nil {
		return InvalidError{err}
	}
	return nil
}

// finite returns those of some samples whose predictions are finite. Any other is a DamagedError,
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

// maxProbed is the number of values of an image up to which Verify predicts: larger images, which
// few runs have, would take it much memory.
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
