package serve

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/pollen-ml/pollen/bayes"
)

// model is a Model that is loaded. Its run can be replaced by one with the same classes and image
// size; pending requests then continue with the new run.
type model struct {
	name, version string
	data          bayes.Data
	queue         *queue
	drift         *drift
	// requests counts the requests that have acquired the model. A model that is removed waits
	// for them.
	requests sync.WaitGroup
}

// models are the models of a server.
type models struct {
	mu     sync.RWMutex
	all    []*model // in the order of the caller, at least one
	closed bool     // no model may be added
}

// acquire returns the model for a request, which must call requests.Done. Without a version it
// returns the last model of that name, without a name the first model.
func (l *models) acquire(name, version string) (*model, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	m := l.find(name, version)
	if m != nil {
		m.requests.Add(1)
		return m, nil
	}
	what := fmt.Sprintf("model %.100q", name)
	if version != "" {
		what = fmt.Sprintf("version %.100q of ", version) + what
	}
	return nil, refuse(http.StatusNotFound, "there is no %s; GET /v2/models lists the models", what)
}

func (l *models) find(name, version string) *model {
	name = cmp.Or(name, l.all[0].name)
	for _, m := range slices.Backward(l.all) {
		if m.name == name && (version == "" || m.version == version) {
			return m
		}
	}
	return nil
}

// open reports whether requests are accepted.
func (l *models) open() bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return !l.closed
}

// list returns the models.
func (l *models) list() []*model {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return slices.Clone(l.all)
}

// info returns the description of a model's run.
func (m *model) info() runInfo { return m.queue.served.Load().info }

// imageSize returns the number of bytes of an image of the network's size.
func (m *model) imageSize() int { return m.data.Channels * m.data.Height * m.data.Width }
