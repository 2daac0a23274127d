package optimizers

import (
	"maps"
	"math"
	"strconv"
	"strings"
	"testing"
)

func ratesOf(t *testing.T, s Schedule, steps int) []float64 {
	t.Helper()
	rates, err := s.Rates(steps)
	if err != nil {
		t.Fatal(err)
	}
	if len(rates) != steps {
		t.Fatalf("%v: %d rates for %d steps", s, len(rates), steps)
	}
	return rates
}

func TestSchedules(t *testing.T) {
	for _, c := range []struct {
		schedule Schedule
		want     []float64
	}{
		{Constant{0.1}, []float64{0.1, 0.1, 0.1}},
		{Constant{0}, []float64{0}},
		{Step{8, 0.5, 2}, []float64{8, 8, 4, 4, 2}},
		{Step{8, 0.5, 1}, []float64{8, 4, 2}},
		{Step{8, 0, 2}, []float64{8, 8, 0, 0, 0}},
		{Power{2, 1, 1}, []float64{2, 1, 2.0 / 3, 0.5}},
		{Power{3, 4, 0.5}, []float64{1.5, 3 / math.Sqrt(5), 3 / math.Sqrt(6)}},
		{Cosine{2, 1}, []float64{2, 1.5 + math.Sqrt(0.125), 1.5, 1.5 - math.Sqrt(0.125), 1}},
		{Cosine{0, 1}, []float64{0, 1}},
		{Cosine{0.3, 0.1}, []float64{0.3}},
		// L = ceil(7/3) = 3: the last cycle is cut short.
		{Cyclical{2, 3}, []float64{2, 1.5, 0.5, 2, 1.5, 0.5, 2}},
		{Cyclical{2, 1}, []float64{2, 1 + math.Sqrt(0.5), 1, 1 - math.Sqrt(0.5)}},
		{Cyclical{2, 4}, []float64{2, 2, 2, 2}},
		{WarmUp{4, Constant{1}}, []float64{0.25, 0.5, 0.75, 1, 1, 1}},
		{WarmUp{2, Cosine{2, 0}}, []float64{1, 2, 2, 1, 0}},
		{Polynomial{0.01, 0.0001, 0.55}, []float64{0.01}},
		{Polynomial{4, 1, 1}, []float64{4, 2, 4.0 / 3, 1}},
	} {
		wantClose(t, c.schedule.String(), ratesOf(t, c.schedule, len(c.want)), c.want, 1e-15)
	}
}

// First, last and exponent give the a and b of the literature on samplers.
func TestPolynomialFromFirstAndLast(t *testing.T) {
	const steps = 10001
	for _, s := range []Polynomial{{0.01, 0.0001, 0.55}, {0.2, 0.1999, 1}, {1e30, 1e-30, 0.7}, {3, 1, 2}} {
		rates := ratesOf(t, s, steps)
		b := (steps - 1) / (math.Pow(s.First/s.Last, 1/s.Exponent) - 1)
		a := s.First * math.Pow(b, s.Exponent)
		for step, rate := range rates {
			if want := a * math.Pow(b+float64(step), -s.Exponent); math.Abs(rate-want) > 1e-9*want {
				t.Fatalf("%v: step %d has %v, want %v", s, step, rate, want)
			}
		}
		if rates[0] != s.First || math.Abs(rates[steps-1]-s.Last) > 1e-13*s.Last {
			t.Errorf("%v: goes from %v to %v", s, rates[0], rates[steps-1])
		}
	}
}

func TestScheduleErrors(t *testing.T) {
	nan, infinite := math.NaN(), math.Inf(1)
	for _, s := range []Schedule{
		Constant{-1}, Constant{nan}, Constant{infinite}, Constant{1e39},
		Step{-1, 1, 1}, Step{1, -1, 1}, Step{1, nan, 1}, Step{1, 1, 0}, Step{1, 1, -3},
		Power{-1, 1, 1}, Power{1, 0, 1}, Power{1, -1, 1}, Power{1, 1, 0}, Power{1, 1, nan}, Power{1, infinite, 1},
		Polynomial{1, 1, 1}, Polynomial{1, 2, 1}, Polynomial{1, 0, 1}, Polynomial{0, 0, 1}, Polynomial{2, 1, 0}, Polynomial{2, 1, -1},
		Polynomial{1, 0.01, 1e-4}, Polynomial{nan, 1, 1},
		Cosine{-1, 0}, Cosine{1, -1}, Cosine{1, nan},
		Cyclical{-1, 2}, Cyclical{1, 0}, Cyclical{nan, 1},
		WarmUp{0, Constant{1}}, WarmUp{1, nil}, WarmUp{1, WarmUp{1, Constant{1}}}, WarmUp{1, Constant{-1}},
	} {
		if err := s.Validate(); err == nil || !strings.HasPrefix(err.Error(), "optimizers: schedule ") {
			t.Errorf("%#v: Validate says %v", s, err)
		}
		if rates, err := s.Rates(10); err == nil {
			t.Errorf("%#v: gives %v", s, rates)
		}
	}
	for _, c := range []struct {
		schedule Schedule
		steps    int
	}{
		{Constant{1}, 0}, {Cosine{1, 0}, -1}, {Cyclical{1, 5}, 4}, {Cyclical{1, 1}, 0}, {WarmUp{5, Constant{1}}, 5}, {WarmUp{1, Constant{1}}, 0},
		{Step{1, 10, 1}, 50}, {WarmUp{1, Step{1, 10, 1}}, 50}, {Power{1, 1e-30, 2}, 3}, {WarmUp{1, Cyclical{1, 3}}, 3},
	} {
		if err := c.schedule.Validate(); err != nil {
			t.Errorf("%v: %v", c.schedule, err)
		}
		if rates, err := c.schedule.Rates(c.steps); err == nil {
			t.Errorf("%v gives %v for %d steps", c.schedule, rates, c.steps)
		}
	}
}

var texts = map[string]Schedule{
	"constant:0.1":                Constant{0.1},
	"step:5e-4,0.5,12000":         Step{5e-4, 0.5, 12000},
	"power:0.2,15,0.55":           Power{0.2, 15, 0.55},
	"polynomial:0.01,0.0001,0.55": Polynomial{0.01, 0.0001, 0.55},
	"cosine:0.1,0":                Cosine{0.1, 0},
	"cyclical:0.2,4":              Cyclical{0.2, 4},
	"warmup:500,cosine:0.1,0":     WarmUp{500, Cosine{0.1, 0}},
	" cosine : 0.1 , 1e-3 ":       Cosine{0.1, 1e-3},
	"step:1,1,1e6":                Step{1, 1, 1000000},
	"warmup:1, constant:3":        WarmUp{1, Constant{3}},
}

func TestParseSchedule(t *testing.T) {
	for text, want := range texts {
		s, err := ParseSchedule(text)
		if err != nil || s != want {
			t.Errorf("%q is %#v, %v, want %#v", text, s, err, want)
			continue
		}
		if again, err := ParseSchedule(s.String()); err != nil || again != s {
			t.Errorf("%q writes %q, which is %#v, %v", text, s.String(), again, err)
		}
	}
	for text, says := range map[string]string{
		"": "cyclical:INITIAL,CYCLES", "linear:1,2": "warmup:STEPS,SCHEDULE", "0.1": "constant:RATE", "Constant:1": "constant:RATE",
		"constant": "constant:RATE", "constant:": "constant:RATE", "constant:1,2": "constant:RATE", "constant:x": "constant:RATE",
		"constant:-1": "RATE must be at least 0 and finite in float32, got -1", "constant:NaN": "RATE must be at least 0 and finite in float32, got NaN",
		"constant:inf": "RATE must be at least 0 and finite in float32, got +Inf", "step:1,0.5": "step:INITIAL,FACTOR,EVERY",
		"step:1,0.5,2.5": "with an integer count, got 2.5", "step:1,0.5,1e300": "with an integer count",
		"step:1,0.5,nan": "with an integer count", "step:1,0.5,0": "EVERY must be at least 1, got 0",
		"cyclical:1,0": "CYCLES must be at least 1, got 0", "polynomial:1,2,3": "FIRST must be above LAST",
		"warmup": "STEPS,SCHEDULE", "warmup:5": "cosine:FIRST,LAST",
		"warmup:x,constant:1": `got "x" for STEPS`, "warmup:0,constant:1": "STEPS must be at least 1, got 0", "warmup:5,warmup:5,constant:1": "one warmup",
		"warmup:5,constant:-1": "RATE must be at least 0 and finite in float32, got -1",
	} {
		if s, err := ParseSchedule(text); s != nil || err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q is %v, %v, want an error with %q", text, s, err, says)
		}
	}
	for _, form := range ScheduleForms() {
		name, _, _ := strings.Cut(form, ":")
		found := false
		for text := range texts {
			found = found || strings.HasPrefix(text, name+":")
		}
		if !found {
			t.Errorf("%s has no test", form)
		}
	}
}

// No text makes it panic, and what it accepts is valid and, written out, reads as itself.
func FuzzParseSchedule(f *testing.F) {
	for text := range texts {
		f.Add(text)
	}
	for _, text := range []string{"warmup:1,warmup:1,", "step:1,1,9e999", "cyclical:0x1p-3,1e1", "constant:1_0", ":::,,,", "cosine:-0,0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSchedule(text)
		if err != nil {
			if s != nil {
				t.Errorf("%q gives %v and %v", text, s, err)
			}
			return
		}
		again, err := ParseSchedule(s.String())
		if err != nil || again != s {
			t.Errorf("%q is %v, which reads as %v, %v", text, s, again, err)
		}
		rates, err := s.Rates(50)
		for step, rate := range rates {
			if err != nil || !(rate >= 0) || math.IsInf(float64(float32(rate)), 0) {
				t.Errorf("%v: the rate of step %d is %v (%v)", s, step, rate, err)
			}
		}
	})
}

// A registered schedule is read, on its own and after a warm-up.
func TestRegisterSchedule(t *testing.T) {
	defer func(before map[string]func(string) (Schedule, error)) { custom = before }(maps.Clone(custom))
	parse := func(text string) (Schedule, error) {
		rate, err := strconv.ParseFloat(text, 64)
		return Constant{2 * rate}, err
	}
	if err := RegisterSchedule("doubled", parse); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]Schedule{"doubled:3": Constant{6}, "warmup:5,doubled:3": WarmUp{5, Constant{6}}} {
		if got, err := ParseSchedule(text); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", text, got, err, want)
		}
	}
	if err := RegisterSchedule("nothing", func(string) (Schedule, error) { return nil, nil }); err != nil {
		t.Fatal(err)
	}
	for want, err := range map[string]error{
		"doubled\" is registered already":  RegisterSchedule("doubled", parse),
		"constant\" is registered already": RegisterSchedule("constant", parse),
		"warmup\" is registered already":   RegisterSchedule("warmup", parse),
		"a word for a name":                RegisterSchedule("two words", parse),
		"and a function":                   RegisterSchedule("none", nil),
		`schedule "doubled:x"`:             parsed("doubled:x"),
		"returned no schedule":             parsed("nothing:1"),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

func parsed(text string) error {
	_, err := ParseSchedule(text)
	return err
}
