package pollen

import (
	"cmp"
	"github.com/pollen-ml/pollen/tensor"
)

// Observer follows a run, from one goroutine at a time. It changes nothing in it.
type Observer func(Event)

// Event is what an Observer gets after each window of steps of a fit and each sample of a
// prediction.
type Event struct {
	Task        string // "fit", "try", "temperature", "mixing", "predict" or "gradient"
	On          string // the data's name
	Done, Total int    // steps of a fit; samples of a prediction
	Images      int    // that all chains, or the sample, went through since the event before

	// Of a fit's last window, means over steps and chains; split R-hat, of the watched weight, so
	// far. NaN where there is none.
	Loss, Accuracy, Temperature, RHat float64

	Remark string // what a person should know, if anything; the numbers above are then 0
}

// Option sets how a call is done and who watches: samples are the same.
type Option func(*environment)

// environment holds what options set.
type environment struct {
	device             tensor.Device
	observe            Observer
	notes              map[string]string
	level              float64
	withoutDamaged     bool
	inDistributionRate float64
}

// WithDevice does the work on a device, which the caller closes; the default is all of the host's
// threads.
func WithDevice(device tensor.Device) Option { return func(e *environment) { e.device = device } }

// WithObserver reports progress to an observer; nil is none.
func WithObserver(o Observer) Option {
	return func(e *environment) {
		if e.observe = o; o == nil {
			e.observe = func(Event) {}
		}
	}
}

// WithNotes keeps notes in the manifest of a new run, such as where its data came from.
func WithNotes(notes map[string]string) Option { return func(e *environment) { e.notes = notes } }

// WithLevel is the probability with which prediction sets hold the true class; 0.9 by default.
func WithLevel(level float64) Option { return func(e *environment) { e.level = level } }

// WithoutDamaged goes on without samples and a calibration that are damaged or missing, else
// errors: LeftOut has these samples, and the observer is told.
func WithoutDamaged() Option { return func(e *environment) { e.withoutDamaged = true } }

// WithInDistributionRate is the share of images like those trained on to call familiar; 0.95 by
// default.
func WithInDistributionRate(rate float64) Option {
	return func(e *environment) { e.inDistributionRate = rate }
}

// checkLevels refuses a level or a rate that is not a probability.
func (e environment) checkLevels() error {
	switch {
	case !(e.level > 0 && e.level < 1):
		return invalid("level is %v, wants a number between 0 and 1", e.level)
	case !(e.inDistributionRate > 0 && e.inDistributionRate < 1):
		return invalid("familiar rate is %v, wants a number between 0 and 1", e.inDistributionRate)
	}
	return nil
}

func environmentOf(options []Option) environment {
	e := environment{observe: func(Event) {}, level: 0.9, inDistributionRate: 0.95}
	for _, option := range options {
		option(&e)
	}
	return e
}

// on calls do with the environment's device, or with the host, which is closed afterwards.
func (e environment) on(do func(tensor.Device) error) error {
	if e.device != nil {
		return do(e.device)
	}
	host := tensor.NewHost(0)
	return cmp.Or(do(host), host.Close())
}

func (e environment) remark(text string) { e.observe(Event{Remark: text}) }
