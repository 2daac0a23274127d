package serve

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/internal/memory"
)

// Model is a run, and the name and version under which a Server answers with it.
type Model struct {
	// Name is part of paths such as /v2/models/NAME/infer. "" is the base name of the run's
	// directory.
	Name string
	// Version tells several runs of one name apart. "" is "1".
	Version string
	Run     *bayes.Run
	// OtherColumns are columns of CSV files of pixels that are not read, see datasets.Options.
	OtherColumns []string
}

// maxModelName is the largest size in bytes of a model's name or version, that of a file's name.
const maxModelName = 255

// named returns a copy of the models with names and versions, or an OptionError.
func named(list []Model) ([]Model, error) {
	if len(list) == 0 {
		return nil, invalid("models", "must be at least one, got none")
	}
	list = slices.Clone(list)
	for i := range list {
		m := &list[i]
		if m.Run == nil {
			return nil, invalid("models", "model %d must have a run", i)
		}
		if m.Name == "" {
			m.Name = filepath.Base(m.Run.Dir())
		}
		if m.Version == "" {
			m.Version = "1"
		}
		for _, text := range []string{m.Name, m.Version} {
			if !isModelName(text) {
				return nil, invalid("models", "a name or version must be printable text of 1 to %d bytes without slashes, got %.300q", maxModelName, text)
			}
		}
		same := func(other Model) bool { return other.Name == m.Name && other.Version == m.Version }
		if slices.ContainsFunc(list[:i], same) {
			return nil, invalid("models", "must have different names or versions, got %s version %s twice", m.Name, m.Version)
		}
	}
	return list, nil
}

func isModelName(text string) bool {
	bad := func(r rune) bool { return r == '/' || !unicode.IsPrint(r) }
	return text != "" && text != "." && text != ".." && len(text) <= maxModelName && utf8.ValidString(text) && !strings.ContainsFunc(text, bad)
}

// model is a Model that is loaded. The run of a name and version can be replaced by one with the
// same classes and size of images: its requests then need not be begun again.
type model struct {
	name, version string
	data          bayes.Data
	queue         *queue
	drift         *drift
	// requests are those that have acquired the model. A model that is removed waits for them.
	requests sync.WaitGroup
}

// models are the models of a server.
type models struct {
	mu     sync.RWMutex
	all    []*model // in the order of the caller, at least one
	closed bool     // no model may be added
}

// acquire returns the model for a request, which must call requests.Done. Without a version it is
// the last one of that name, without a name the first one.
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
	if name == "" {
		name = l.all[0].name
	}
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

// String returns the models in words, as in "flowers version 1: 30 samples".
func (s *Server) String() string {
	var all []string
	for _, m := range s.models.list() {
		plural := "s"
		if m.info().Samples == 1 {
			plural = ""
		}
		all = append(all, fmt.Sprintf("%s version %s: %d sample%s", m.name, m.version, m.info().Samples, plural))
	}
	return strings.Join(all, ", ")
}

// info returns the description of a model's run.
func (m *model) info() runInfo { return m.queue.served.Load().info }

// imageSize returns the number of bytes of an image of the network's size.
func (m *model) imageSize() int { return m.data.Channels * m.data.Height * m.data.Width }

// checkLoading returns a MemoryError if runs that are to be loaded together need more memory than
// is available. A single one is checked when it is loaded.
func checkLoading(runs []*bayes.Run, batch int) error {
	if len(runs) < 2 {
		return nil
	}
	need, onDevice, free := int64(0), int64(0), int64(memory.Unknown)
	for _, run := range runs {
		m, err := run.PredictorMemory(batch)
		if err != nil {
			return err
		}
		need, onDevice, free = need+m.Host, onDevice+m.Device, min(free, m.DeviceAvailable)
	}
	task := fmt.Sprintf("serve: loading %d runs", len(runs))
	advice := []string{"fewer runs", "a smaller batch"}
	if err := memory.Check(task, need, func(int64) []string { return advice }); err != nil {
		return err
	}
	if onDevice > free {
		return errors.WithStack(&memory.Error{Task: task, Need: onDevice, Limit: memory.Limit{Bytes: free, Reason: "the GPU's memory"}, Advice: advice})
	}
	return nil
}

// load loads the runs of models, except of those that keep reports as unchanged. After an error
// nothing is loaded.
func load(list []Model, keep func(i int) (bool, error), options Options) ([]*served, error) {
	loaded := make([]*served, len(list))
	var runs []*bayes.Run
	kept := make([]bool, len(list))
	for i, m := range list {
		var err error
		if kept[i], err = keep(i); err != nil {
			return nil, err
		}
		if !kept[i] {
			runs = append(runs, m.Run)
		}
	}
	if err := checkLoading(runs, options.Batch); err != nil {
		return nil, err
	}
	for i, m := range list {
		if kept[i] {
			continue
		}
		var err error
		if loaded[i], err = loadRun(m, options); err != nil {
			closeAll(loaded)
			return nil, err
		}
	}
	return loaded, nil
}

// closeAll closes predictors, of which some may be nil, and returns the first error.
func closeAll(all []*served) error {
	var first error
	for _, p := range all {
		if p == nil {
			continue
		}
		if err := p.Close(); first == nil {
			first = err
		}
	}
	return first
}
