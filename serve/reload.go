package serve

import (
	"path/filepath"
	"slices"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen"
)

// served is a predictor, and the run that it predicts with.
type served struct {
	predictor
	info runInfo
}

// loadRun loads a run's network and samples.
func loadRun(run *pollen.Run, options Options) (*served, error) {
	expected, err := run.Expected()
	if err != nil {
		return nil, err
	}
	p, err := run.Predictor(options.Batch)
	if err != nil {
		return nil, err
	}
	return &served{p, describe(run, p, expected)}, nil
}

// describe returns the JSON of GET /run.
func describe(run *pollen.Run, p *pollen.Predictor, expected int) runInfo {
	m := run.Manifest()
	a := runInfo{
		Name: filepath.Base(run.Dir()), Network: m.Spec.NetworkName(), Method: pollen.MethodText(m.Spec.Method),
		Data: m.Data.Name, Examples: m.Data.Size, Parameters: m.Parameters,
		Channels: m.Data.Channels, Height: m.Data.Height, Width: m.Data.Width, ClassNames: m.Data.ClassNames,
		Samples: p.Samples(), Expected: expected, Calibrated: p.Calibrated(), Digest: p.Digest(),
	}
	a.Level, a.InDistributionRate = p.Levels()
	a.Risk = p.Certificate()
	if c := p.Calibration(); c != nil {
		a.Calibration = &calibration{c.Data, c.Examples, c.Content}
	}
	if sets := p.Sets(); sets != nil {
		a.SetRule = &sets.Rule
		for _, t := range sets.Thresholds {
			a.Thresholds = append(a.Thresholds, classThreshold{m.Data.ClassNames[t.Class], t})
		}
	}
	if t := p.SelfTest(); t != nil {
		a.SelfTest = &selfTest{t.Passed(), t.String(), t.Images(), t.Rejected()}
	}
	return a
}

// Reload reads the certificate and the token again, loads the run's present samples and
// calibration, and then answers with them, without losing a request. The run must have the classes
// and the size of images of the one before; it may be in another directory. Meanwhile both are in
// memory. After an error the server continues as before.
func (s *Server) Reload(run *pollen.Run) error {
	read, err := s.options.load()
	if err != nil {
		return err
	}
	if d := run.Manifest().Data; d.Channels != s.data.Channels || d.Height != s.data.Height || d.Width != s.data.Width || d.Crop != s.data.Crop ||
		!slices.Equal(d.ClassNames, s.data.ClassNames) {
		return errors.Errorf("serve: reload: %s must have the classes and the size of images of the run before: start another server for it", run.Dir())
	}
	next, err := loadRun(run, s.options)
	if err != nil {
		return err
	}
	next.info.limits(s.options)
	if err := s.queue.replace(next); err != nil {
		next.Close()
		return err
	}
	s.secrets.Store(read)
	return nil
}

// Samples returns the number of samples that answers average.
func (s *Server) Samples() int { return s.info().Samples }

// limits fills in the limits of requests.
func (a *runInfo) limits(o Options) {
	a.MaxImages, a.MaxBody, a.MaxPixels = o.MaxImages, o.MaxBody, o.MaxPixels
}

// replace makes the queue answer with another predictor from the next batch on, and closes the one
// before. It returns an error, and changes nothing, if a prediction does not end in time or the
// queue is closed.
func (q *queue) replace(next *served) error {
	select {
	case q.turn <- struct{}{}:
	case <-time.After(q.timeout):
		return errors.Errorf("serve: reload: a prediction has not ended after %v", q.timeout)
	}
	q.mu.RLock() // close waits for it
	if q.closed {
		q.mu.RUnlock()
		<-q.turn
		return errors.New("serve: reload: the server is closing")
	}
	before := q.served.Swap(next)
	q.mu.RUnlock()
	<-q.turn
	return before.Close()
}
