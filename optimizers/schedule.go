package optimizers

import (
	"cmp"
	"math"

	"github.com/pkg/errors"
)

// Schedule is a learning rate that changes from step to step. In the formulae t is the step, from
// 0, and K the number of steps of the run. A custom schedule needs RegisterSchedule.
type Schedule interface {
	// Rates returns a run's rates by step, for graph.Builder's Table: finite in float32, at least
	// 0.
	Rates(steps int) ([]float64, error)
	// Validate reports the first number that no run can use.
	Validate() error
	// String returns the text that ParseSchedule reads as this schedule. The two must be equal by
	// reflect.DeepEqual.
	String() string
}

// Constant is Rate at every step.
type Constant struct {
	Rate float64 // at least 0
}

// Validate implements Schedule.
func (s Constant) Validate() error { return checkSchedule(s, nonNegative("RATE", s.Rate)) }

// Rates implements Schedule.
func (s Constant) Rates(steps int) ([]float64, error) {
	return table(s, steps, func(int) float64 { return s.Rate })
}

// String implements Schedule.
func (s Constant) String() string { return format("constant", s.Rate) }

// Step is Initial * Factor^floor(t/Every): Initial, multiplied by Factor after each Every steps.
type Step struct {
	Initial, Factor float64 // at least 0
	Every           int     // steps, at least 1
}

// Validate implements Schedule.
func (s Step) Validate() error {
	return checkSchedule(s, nonNegative("INITIAL", s.Initial), nonNegative("FACTOR", s.Factor), atLeastOne("EVERY", s.Every))
}

// Rates implements Schedule.
func (s Step) Rates(steps int) ([]float64, error) {
	return table(s, steps, func(t int) float64 { return s.Initial * math.Pow(s.Factor, float64(t/s.Every)) })
}

// String implements Schedule.
func (s Step) String() string { return format("step", s.Initial, s.Factor, float64(s.Every)) }

// Power is Scale * (Offset + t)^-Exponent, the a(b+t)^-gamma of Welling and Teh 2011, whose
// samplers converge with 0.5 < Exponent <= 1.
type Power struct {
	Scale    float64 // a, at least 0
	Offset   float64 // b, in steps, above 0
	Exponent float64 // gamma, above 0
}

// Validate implements Schedule.
func (s Power) Validate() error {
	return checkSchedule(s, nonNegative("SCALE", s.Scale), positive("OFFSET", s.Offset), positive("EXPONENT", s.Exponent))
}

// Rates implements Schedule.
func (s Power) Rates(steps int) ([]float64, error) {
	return table(s, steps, func(t int) float64 { return s.Scale * math.Pow(s.Offset+float64(t), -s.Exponent) })
}

// String implements Schedule.
func (s Power) String() string { return format("power", s.Scale, s.Offset, s.Exponent) }

// Polynomial is the Power that is First at the first step of the run and Last at its last: over K-1
// steps, b = (K-1) / ((First/Last)^(1/Exponent) - 1) and a = First * b^Exponent. The rate of a run
// of one step is First.
type Polynomial struct {
	First, Last float64 // First > Last > 0
	Exponent    float64 // above 0
}

// Validate implements Schedule.
func (s Polynomial) Validate() error {
	err := checkSchedule(s, positive("FIRST", s.First), positive("LAST", s.Last), positive("EXPONENT", s.Exponent))
	switch {
	case err != nil:
		return err
	case !(s.First > s.Last):
		return errors.Errorf("optimizers: schedule %v: FIRST must be above LAST, got %v and %v", s, s.First, s.Last)
	case s.growth() <= 0 || math.IsInf(s.growth(), 1):
		return errors.Errorf("optimizers: schedule %v: no polynomial of exponent -%v goes from %v to %v", s, s.Exponent, s.First, s.Last)
	}
	return nil
}

// growth returns the increase of b+t over the run, in units of b.
func (s Polynomial) growth() float64 { return math.Expm1(math.Log(s.First/s.Last) / s.Exponent) }

// Rates implements Schedule.
func (s Polynomial) Rates(steps int) ([]float64, error) {
	growth := s.growth()
	return table(s, steps, func(t int) float64 {
		return s.First * math.Pow(1+float64(progress(t, steps)*growth), -s.Exponent)
	})
}

// String implements Schedule.
func (s Polynomial) String() string { return format("polynomial", s.First, s.Last, s.Exponent) }

// Cosine is Last + (First-Last)/2 * (1 + cos(pi t/(K-1))): from First at the first step to Last at
// the last, along half a cosine (Loshchilov and Hutter 2017, equation 5, without restarts). The
// rate of a run of one step is First.
type Cosine struct {
	First, Last float64 // at least 0
}

// Validate implements Schedule.
func (s Cosine) Validate() error {
	return checkSchedule(s, nonNegative("FIRST", s.First), nonNegative("LAST", s.Last))
}

// Rates implements Schedule.
func (s Cosine) Rates(steps int) ([]float64, error) {
	return table(s, steps, func(t int) float64 {
		share := (1 + math.Cos(math.Pi*progress(t, steps))) / 2
		return float64(share*s.First) + float64((1-share)*s.Last)
	})
}

// String implements Schedule.
func (s Cosine) String() string { return format("cosine", s.First, s.Last) }

// Cyclical is Initial/2 * (cos(pi mod(t, L)/L) + 1), L = ceil(K/Cycles): each cycle starts at
// Initial and falls close to 0 (Zhang, Li, Zhang, Chen and Wilson 2020, equation 1, whose k is
// t+1).
type Cyclical struct {
	Initial float64 // at least 0
	Cycles  int     // 1 to the steps of the run
}

// Validate implements Schedule.
func (s Cyclical) Validate() error {
	return checkSchedule(s, nonNegative("INITIAL", s.Initial), atLeastOne("CYCLES", s.Cycles))
}

// Rates implements Schedule.
func (s Cyclical) Rates(steps int) ([]float64, error) {
	if steps >= 1 && s.Cycles > steps {
		return nil, errors.Errorf("optimizers: schedule %v: CYCLES must be at most the %d steps of the run, got %d", s, steps, s.Cycles)
	}
	length := (steps-1)/max(1, s.Cycles) + 1
	return table(s, steps, func(t int) float64 {
		return s.Initial / 2 * (math.Cos(math.Pi*float64(t%length)/float64(length)) + 1)
	})
}

// String implements Schedule.
func (s Cyclical) String() string { return format("cyclical", s.Initial, float64(s.Cycles)) }

// WarmUp rises in Steps equal steps to the first rate of another schedule, (t+1)/Steps of it at
// step t, and then follows that schedule as in a run of K - Steps steps (Goyal et al. 2017, section
// 2.2).
type WarmUp struct {
	Steps int // 1 to K-1
	Then  Schedule
}

// Validate implements Schedule.
func (s WarmUp) Validate() error {
	if _, twice := s.Then.(WarmUp); twice || s.Then == nil {
		return errors.New("optimizers: schedule warmup: must be followed by a schedule other than warmup")
	}
	if err := s.Then.Validate(); err != nil {
		return err
	}
	return checkSchedule(s, atLeastOne("STEPS", s.Steps))
}

// Rates implements Schedule.
func (s WarmUp) Rates(steps int) ([]float64, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if s.Steps >= steps {
		return nil, errors.Errorf("optimizers: schedule %v: a run of %d steps ends before the schedule begins", s, steps)
	}
	then, err := s.Then.Rates(steps - s.Steps)
	if err != nil {
		return nil, err
	}
	if len(then) != steps-s.Steps {
		return nil, errors.Errorf("optimizers: schedule %v has %d rates for %d steps", s.Then, len(then), steps-s.Steps)
	}
	rates := make([]float64, steps)
	for t := range s.Steps {
		rates[t] = then[0] * float64(t+1) / float64(s.Steps)
	}
	copy(rates[s.Steps:], then)
	return rates, nil
}

// progress returns the fraction of a run that is over at step t: 0 at its first step, 1 at its
// last.
func progress(t, steps int) float64 { return float64(t) / float64(max(1, steps-1)) }

// table validates a schedule and computes the rates of a run.
func table(s Schedule, steps int, rate func(t int) float64) ([]float64, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if steps < 1 {
		return nil, errors.Errorf("optimizers: schedule %v: a run must have at least 1 step, got %d", s, steps)
	}
	rates := make([]float64, steps)
	for t := range rates {
		rates[t] = rate(t)
		if !(rates[t] >= 0 && rates[t] <= math.MaxFloat32) {
			return nil, errors.Errorf("optimizers: schedule %v: the rate of step %d is %v, which float32 cannot hold", s, t, rates[t])
		}
	}
	return rates, nil
}

func checkSchedule(s Schedule, errs ...error) error {
	return errors.Wrapf(cmp.Or(errs...), "optimizers: schedule %v", s)
}

func atLeastOne(field string, v int) error {
	if v >= 1 {
		return nil
	}
	return errors.Errorf("%s must be at least 1, got %d", field, v)
}
