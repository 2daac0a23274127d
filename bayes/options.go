package bayes

import (
	"cmp"
	"context"
	"reflect"
	"time"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/tensor"
)

// Observer receives the events of a run, from one goroutine at a time. It does not change results.
type Observer func(Event)

// Event is what an Observer receives after each window of steps of a fit, and after each sample of
// a prediction. Within a window that takes seconds, it also receives events without scores, which
// only report progress.
type Event struct {
	// Task is "fit", "pilot", "warm start", "train again", "try", "features", "temperature",
	// "mixing", "predict", "gradient", "llc" or "NUTS".
	Task string
	// On is the name of the data, and Of the number of its images that a prediction, a gradient or
	// features are computed for; 0 in other tasks.
	On string
	Of int
	// Done and Total count the steps of a fit, a pilot or a warm start, the samples of a
	// prediction, or the images whose features a frozen network computes. A pilot or warm start may
	// end before Total.
	Done, Total int
	// Images is the number of images processed since the previous event, by all chains or with one
	// sample. Divided by the time between the two events it is the throughput.
	Images int

	// Loss, Accuracy and Temperature are means over the steps and chains of a fit's last window,
	// and RHat is the split R-hat of the watched weight so far: near 1 if the chains agree. They
	// are NaN if they do not apply.
	Loss, Accuracy, Temperature, RHat float64
	// ValidationLoss and ValidationAccuracy are the mean scores of the chains on some of the
	// validation images. ValidationNLL and AverageAccuracy are the negative log-likelihood and the
	// accuracy of the average of the samples so far or, before the first, of the chains. They are
	// NaN if they were not measured. During a warm start, ValidationLoss is the loss on the
	// training images held out of it.
	ValidationLoss, ValidationAccuracy, ValidationNLL, AverageAccuracy float64

	// Remark, if not empty, is a sentence for a person, such as a warning; the numbers above are
	// then 0.
	Remark string
}

// Option sets how a call is made and observed. It does not change samples, apart from rounding by
// the device. A nil Option changes nothing.
type Option func(*environment)

// environment has the values of a call's options: everything that is not part of the Spec, because
// the samples do not depend on it.
type environment struct {
	levels
	device         tensor.Device
	observe        Observer
	notes          map[string]string
	withoutDamaged bool
	now            func() time.Time
	unlabelled     *datasets.Dataset
	featureDir     string
}

// levels are the options that answers are decided by.
type levels struct {
	level, inDistributionRate float64
	setRule                   evaluate.SetRule
	unscaled                  bool
	// risk is the maximum certified error rate among the images that are answered; if it is 0, none
	// are referred. riskConfidence is the confidence of the certificate.
	risk, riskConfidence float64
}

// WithDevice makes a call compute on a device, which the caller closes. The default, or nil, is the
// host with all its threads. Package devices opens GPUs, and the host with fewer threads.
func WithDevice(device tensor.Device) Option { return func(e *environment) { e.device = device } }

// WithObserver makes a call report its progress to an observer; nil is none.
func WithObserver(o Observer) Option {
	return func(e *environment) {
		if e.observe = o; o == nil {
			e.observe = func(Event) {}
		}
	}
}

// WithNotes adds notes to the manifest of a new run, such as where its data came from.
// Run.Calibrate adds them to the calibration.
func WithNotes(notes map[string]string) Option { return func(e *environment) { e.notes = notes } }

// WithUnlabelled adds images to those that a Distillation is trained on; their labels are not used.
// It has no effect on other methods. Resume must be given the same ones.
func WithUnlabelled(images *datasets.Dataset) Option {
	return func(e *environment) { e.unlabelled = images }
}

// WithFeatureCache makes a call cache the features that a frozen network computes in the directory
// dir, which other calls and processes may share. A cached feature is identified by the contents of
// the network's file, its cut and input, the kind of device, and the image. The directory takes at
// most 1 GiB: features that were not used for the longest time are removed, and damaged ones are
// computed again. If dir is "", the default, features are kept in memory only. If the directory
// cannot be written, the call continues without it, and the observer receives a remark.
func WithFeatureCache(dir string) Option { return func(e *environment) { e.featureDir = dir } }

// WithLevel sets the probability with which prediction sets contain the true class; 0.9 by default.
func WithLevel(level float64) Option { return func(e *environment) { e.level = level } }

// WithSetRule sets how prediction sets are formed: by which score, with a threshold for each class
// or one for all, and whether they may be empty. By default a set has the most probable classes,
// with one threshold for all, and is never empty.
func WithSetRule(rule evaluate.SetRule) Option { return func(e *environment) { e.setRule = rule } }

// WithUnscaled makes the probabilities of answers the averages over the samples, the posterior
// predictive. By default, those of a calibrated run are scaled, see evaluate.Calibration.Scaled.
func WithUnscaled() Option { return func(e *environment) { e.unscaled = true } }

// WithRisk makes answers have Refer, which reports whether to refer the image to a person. Images
// are answered if their confidence before scaling reaches a threshold: the lowest one for which the
// error rate among them is at most risk, with a probability of at least confidence over the images
// that the run was calibrated on; see evaluate.Calibration.Certify. If risk is 0, the default,
// answers have no Refer; a confidence of 0 means evaluate.RiskConfidence.
func WithRisk(risk, confidence float64) Option {
	return func(e *environment) { e.risk, e.riskConfidence = risk, cmp.Or(confidence, evaluate.RiskConfidence) }
}

// WithoutDamaged makes a call continue without samples that are damaged or missing, and without a
// damaged calibration or detector. Otherwise these are errors. Run.LeftOut lists these samples, and
// the observer gets a remark.
func WithoutDamaged() Option { return func(e *environment) { e.withoutDamaged = true } }

// WithInDistributionRate sets the fraction of in-distribution images that are recognized as such;
// 0.95 by default.
func WithInDistributionRate(rate float64) Option {
	return func(e *environment) { e.inDistributionRate = rate }
}

// WithClock sets the clock for measuring the device's speed (Auto), reporting slow steps, and
// dating the entries of WithFeatureCache. The default, or nil, is the system's clock.
func WithClock(now func() time.Time) Option {
	return func(e *environment) {
		if e.now = now; now == nil {
			e.now = time.Now
		}
	}
}

// checkLevels refuses a level or a rate that is not a probability.
func (l levels) checkLevels() error {
	switch {
	case !(l.level > 0 && l.level < 1):
		return invalid("level must be between 0 and 1, got %v", l.level)
	case !(l.inDistributionRate > 0 && l.inDistributionRate < 1):
		return invalid("in-distribution rate must be between 0 and 1, got %v", l.inDistributionRate)
	case !(l.risk >= 0 && l.risk < 1):
		return invalid("risk must be between 0 and 1, got %v", l.risk)
	case !(l.riskConfidence > 0 && l.riskConfidence < 1):
		return invalid("confidence of the risk must be between 0 and 1, got %v", l.riskConfidence)
	}
	if err := l.setRule.Validate(); err != nil {
		return &InvalidError{err}
	}
	return nil
}

// environmentOf applies options to the defaults; a later option overrides an earlier one.
func environmentOf(options []Option) environment {
	e := environment{observe: func(Event) {}, now: time.Now, levels: levels{level: 0.9, inDistributionRate: 0.95, riskConfidence: evaluate.RiskConfidence}}
	e.apply(options)
	return e
}

// apply applies options, and skips nil ones.
func (e *environment) apply(options []Option) {
	for _, option := range options {
		if option != nil {
			option(e)
		}
	}
}

// on calls do with the environment's device or, without one, with a new host device, which it
// closes.
func (e environment) on(do func(tensor.Device) error) error {
	if e.device != nil {
		return do(e.device)
	}
	host := tensor.NewHost(0)
	return cmp.Or(do(host), host.Close())
}

func (e environment) remark(text string) { e.observe(Event{Remark: text}) }

// checkContext refuses a nil context, which would be a panic later.
func checkContext(ctx context.Context, task string) error {
	if ctx == nil {
		return invalid("%s: the context must not be nil: use context.Background", task)
	}
	return nil
}

// checkNil refuses a nil pointer as a method or a schedule: the interface that holds it is not nil.
func checkNil(what string, value any) error {
	if v := reflect.ValueOf(value); v.Kind() == reflect.Pointer && v.IsNil() {
		return invalid("%s must not be a nil %T", what, value)
	}
	return nil
}
