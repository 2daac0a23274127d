package optimizers

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/nearest"
)

// schedules are the kinds of schedule that a list of numbers describes. WarmUp, which takes another
// schedule, is not among them.
var schedules = []struct {
	name, fields string
	whole        int // the index of the number that is an integer; -1 for none
	build        func(v []float64) Schedule
}{
	{"constant", "RATE", -1, func(v []float64) Schedule { return Constant{v[0]} }},
	{"step", "INITIAL,FACTOR,EVERY", 2, func(v []float64) Schedule { return Step{v[0], v[1], int(v[2])} }},
	{"power", "SCALE,OFFSET,EXPONENT", -1, func(v []float64) Schedule { return Power{v[0], v[1], v[2]} }},
	{"polynomial", "FIRST,LAST,EXPONENT", -1, func(v []float64) Schedule { return Polynomial{v[0], v[1], v[2]} }},
	{"cosine", "FIRST,LAST", -1, func(v []float64) Schedule { return Cosine{v[0], v[1]} }},
	{"cyclical", "INITIAL,CYCLES", 1, func(v []float64) Schedule { return Cyclical{v[0], int(v[1])} }},
}

const warmUp = "warmup"

// custom has the functions that parse registered schedules, by name.
var custom = map[string]func(text string) (Schedule, error){}

// RegisterSchedule lets ParseSchedule read a schedule of your own. Its String returns "name:text",
// and parse makes the same schedule from text. A run keeps its schedule as text, so a program that
// trains or opens such a run must register the schedule at its start. It is an error if parse is
// nil, or the name is taken or not a word. RegisterSchedule is not safe for concurrent use.
func RegisterSchedule(name string, parse func(text string) (Schedule, error)) error {
	if parse == nil || name == "" || strings.ContainsAny(name, ":, ") {
		return errors.Errorf("optimizers: register schedule: must have a word for a name and a function, got %q", name)
	}
	taken := name == warmUp || custom[name] != nil
	for _, s := range schedules {
		taken = taken || s.name == name
	}
	if taken {
		return errors.Errorf("optimizers: register schedule: %q is registered already", name)
	}
	custom[name] = parse
	return nil
}

// ScheduleForms returns the forms that ParseSchedule reads, with words in capitals for numbers.
// Registered schedules are left out.
func ScheduleForms() []string {
	var forms []string
	for _, s := range schedules {
		forms = append(forms, s.name+":"+s.fields)
	}
	return append(forms, warmUp+":STEPS,SCHEDULE")
}

// ParseSchedule parses a schedule: "constant:0.1", "step:5e-4,0.5,12000", "power:0.2,15,0.55",
// "polynomial:0.01,0.0001,0.55", "cosine:0.1,0", "cyclical:0.2,4", "warmup:500,cosine:0.1,0". For
// any other text the error lists what is accepted.
func ParseSchedule(text string) (Schedule, error) {
	s, err := parseSchedule(text)
	if err == nil {
		err = s.Validate()
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

func parseSchedule(text string) (Schedule, error) {
	name, rest, _ := strings.Cut(text, ":")
	name = strings.TrimSpace(name)
	if name == warmUp {
		first, then, _ := strings.Cut(rest, ",")
		steps, err := parseNumbers(first)
		if err != nil || !isCount(steps[0]) {
			return nil, errors.Errorf("optimizers: schedule %q: must be %s:STEPS,SCHEDULE, got %q for STEPS", text, warmUp, first)
		}
		if inner, _, _ := strings.Cut(then, ":"); strings.TrimSpace(inner) == warmUp {
			return nil, errors.Errorf("optimizers: schedule %q: must have one warmup", text)
		}
		s, err := parseSchedule(then)
		return WarmUp{int(steps[0]), s}, err
	}
	for _, kind := range schedules {
		if kind.name != name {
			continue
		}
		numbers, err := parseNumbers(rest)
		if err != nil || len(numbers) != 1+strings.Count(kind.fields, ",") {
			return nil, errors.Errorf("optimizers: schedule %q: must be %s:%s, with numbers", text, kind.name, kind.fields)
		}
		if kind.whole >= 0 && !isCount(numbers[kind.whole]) {
			return nil, errors.Errorf("optimizers: schedule %q: must be %s:%s with an integer count, got %v", text, kind.name, kind.fields, numbers[kind.whole])
		}
		return kind.build(numbers), nil
	}
	if parse := custom[name]; parse != nil {
		s, err := parse(rest)
		if err == nil && s == nil {
			err = errors.New("its parser returned no schedule")
		}
		return s, errors.Wrapf(err, "optimizers: schedule %q", text)
	}
	return nil, errors.Errorf("optimizers: no schedule %q; %s", text, nearest.Among(text, ScheduleForms()))
}

// isCount reports whether v is an integer that is a valid number of steps on every machine.
func isCount(v float64) bool { return v == math.Trunc(v) && math.Abs(v) <= math.MaxInt32 }

// format returns the text of a schedule. Its numbers parse back exactly.
func format(name string, numbers ...float64) string {
	texts := make([]string, len(numbers))
	for i, v := range numbers {
		texts[i] = strconv.FormatFloat(v, 'g', -1, 64)
	}
	return name + ":" + strings.Join(texts, ",")
}

// String implements Schedule.
func (s WarmUp) String() string { return fmt.Sprintf("%s:%d,%v", warmUp, s.Steps, s.Then) }

// parseNumbers parses numbers separated by commas.
func parseNumbers(text string) ([]float64, error) {
	parts := strings.Split(text, ",")
	numbers := make([]float64, len(parts))
	for i, part := range parts {
		v, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil {
			return nil, errors.Errorf("%q is not a number", part)
		}
		numbers[i] = v
	}
	return numbers, nil
}
