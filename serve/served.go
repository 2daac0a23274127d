package serve

import (
	"context"
	"fmt"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/memory"
)

// predictor is the part of bayes.Predictor that a Server uses.
type predictor interface {
	Answer(ctx context.Context, pixels []byte) ([]bayes.Answer, error)
	PartSize() int
	Close() error
}

// served is a predictor, and the run that it predicts with.
type served struct {
	predictor
	info   runInfo
	arrays datasets.Options // with which files of arrays are read
}

// loadRun loads the network and samples of a model's run.
func loadRun(m Model, options Options) (*served, error) {
	expected, err := m.Run.Expected()
	if err != nil {
		return nil, err
	}
	p, err := m.Run.Predictor(options.Batch)
	if err != nil {
		return nil, err
	}
	return &served{p, describe(m, p, expected), m.arrays()}, nil
}

// describe returns the JSON of GET /run, without limits.
func describe(of Model, p *bayes.Predictor, expected int) runInfo {
	m, d := of.Run.Manifest(), p.Decisions()
	a := runInfo{
		Name: of.Name, Version: of.Version, Network: m.NetworkName(), Method: bayes.MethodText(m.Spec.Method),
		Data: m.Data.Name, Examples: m.Data.Size, Parameters: m.Parameters,
		Channels: m.Data.Channels, Height: m.Data.Height, Width: m.Data.Width, ClassNames: m.Data.ClassNames,
		Samples: p.Samples(), Expected: expected, Calibrated: d.Calibrated(), Digest: p.Digest(),
		InDistributionRate: d.InDistributionRate, Risk: d.Certificate,
	}
	if c := d.Calibration; c != nil {
		a.Calibration = &calibration{c.Data, c.Examples, c.Content, d.Exponent()}
	}
	if sets := d.Sets; sets != nil {
		a.Level, a.SetRule = sets.Level, &sets.Rule
		for _, t := range sets.Thresholds {
			a.Thresholds = append(a.Thresholds, classThreshold{m.Data.ClassNames[t.Class], t})
		}
	}
	if t := d.SelfTest(); t != nil {
		a.SelfTest = &selfTest{t.Passed(), t.String(), t.Images(), t.Rejected()}
	}
	return a
}

// load loads the runs of models, except those for which keep returns true. After an error no run
// stays loaded.
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

// checkLoading returns a MemoryError if several runs together need more memory than is available
// to load them. A single one is checked when it is loaded.
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

// closeAll closes predictors, some of which may be nil, and returns the first error.
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
