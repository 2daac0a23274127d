package serve

import (
	"reflect"
	"slices"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
)

// Reload reads the certificate and the token again, loads the present samples and calibrations of
// the models' runs, and then uses them, without losing a request. Models that are not in the list
// are removed when their requests are answered, others are added. A run that replaces another one
// of the same name and version must have the same classes and size of images; it may be in
// another directory. Runs that have not changed are not loaded again. While it loads, the old and
// the new runs are both in memory. After an error the server continues as before.
func (s *Server) Reload(list []Model) error {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	read, err := s.options.load()
	if err != nil {
		return err
	}
	if list, err = named(list); err != nil {
		return err
	}
	before := make([]*model, len(list)) // nil for models that are added
	keep := func(i int) (bool, error) {
		m := list[i]
		if before[i] = s.models.find(m.Name, m.Version); before[i] == nil {
			return false, nil
		}
		if !before[i].accepts(m.Run.Manifest().Data) {
			return false, errors.Errorf("serve: reload: %s must have the classes and the size of images of the run before: "+
				"serve it as another version or under another name", m.Run.Dir())
		}
		now := before[i].queue.served.Load()
		p, is := now.predictor.(*bayes.Predictor)
		if !is || !reflect.DeepEqual(now.arrays, m.arrays()) {
			return false, nil
		}
		return p.Current(m.Run)
	}
	next, err := load(list, keep, s.options)
	if err != nil {
		return err
	}
	replaced, removed, err := s.replace(list, before, next)
	if err != nil {
		closeAll(next)
		return err
	}
	s.secrets.Store(read)
	for _, m := range removed {
		go func() {
			defer s.retiring.Done()
			m.requests.Wait()
			if err := m.queue.close(); err != nil {
				s.options.Report(err)
			}
		}()
	}
	return closeAll(replaced)
}

// accepts reports whether a run that was trained on d may replace the model's run.
func (m *model) accepts(d bayes.Data) bool {
	return d.Crop == m.data.Crop && d.Bits == m.data.Bits && d.Channels == m.data.Channels && d.Height == m.data.Height && d.Width == m.data.Width &&
		slices.Equal(d.ClassNames, m.data.ClassNames)
}

// replace makes the next predictors answer from the next batch on; a nil one leaves its model
// unchanged. It returns the predictors that are no longer used, and the models that get no more
// requests. It returns an error, and changes nothing, if a prediction does not end in time or the
// server is closed.
func (s *Server) replace(list []Model, before []*model, next []*served) (replaced []*served, removed []*model, err error) {
	select {
	case s.shared.turn <- struct{}{}: // no model predicts until the turn is given back
		defer func() { <-s.shared.turn }()
	case <-time.After(s.options.Timeout):
		return nil, nil, errors.Errorf("serve: reload: a prediction has not ended after %v", s.options.Timeout)
	}
	s.models.mu.Lock()
	defer s.models.mu.Unlock()
	if s.models.closed {
		return nil, nil, errors.New("serve: reload: the server is closing")
	}
	all := slices.Clone(before)
	for i, p := range next {
		switch {
		case p == nil:
		case before[i] == nil:
			all[i] = s.newModel(list[i].Name, list[i].Version, list[i].Run.Manifest().Data, p)
		default:
			p.info.limits(s.options)
			replaced = append(replaced, before[i].queue.served.Swap(p))
		}
	}
	for _, m := range s.models.all {
		if !slices.Contains(all, m) {
			removed = append(removed, m)
		}
	}
	s.models.all = all
	s.retiring.Add(len(removed)) // before Close can wait
	return replaced, removed, nil
}
