//go:build linux

package cuda

import (
	"slices"
	"strings"
	"testing"
	"unsafe"
)

// TestSwitches: each variable has a default and a list of values. With any other value, Open and
// Predict return an error that lists them.
func TestSwitches(t *testing.T) {
	noSwitches(t)
	all := features{graphs: "on", reordering: true, wgmma: true, pdl: true, packing: true, windows: true, pixels: true, rounding: true, ahead: true}
	if got, err := readFeatures(); got != all || err != nil {
		t.Errorf("by default: %+v, %v", got, err)
	}
	for _, c := range []struct {
		variable, value, allowed string
		change                   func(s *features)
	}{
		{CapabilityVariable, "80", "70, 80 or 90", func(s *features) { s.maxCapability = 80 }},
		{GraphsVariable, "off", "on, off or slow", func(s *features) { s.graphs, s.pdl = "off", false }},
		{GraphsVariable, "slow", "on, off or slow", func(s *features) { s.graphs, s.pdl = "slow", false }},
		{AheadVariable, "off", "on or off", func(s *features) { s.ahead = false }},
		{OrderVariable, "off", "on or off", func(s *features) { s.reordering = false }},
		{WGMMAVariable, "off", "on or off", func(s *features) { s.wgmma = false }},
		{PDLVariable, "off", "on or off", func(s *features) { s.pdl = false }},
		{PackedVariable, "off", "on or off", func(s *features) { s.packing = false }},
		{WindowsVariable, "off", "on or off", func(s *features) { s.windows = false }},
		{PixelsVariable, "off", "on or off", func(s *features) { s.pixels = false }},
		{RoundedVariable, "off", "on or off", func(s *features) { s.rounding = false }},
	} {
		t.Run(c.variable+"="+c.value, func(t *testing.T) {
			want := all
			c.change(&want)
			t.Setenv(c.variable, c.value)
			if got, err := readFeatures(); got != want || err != nil {
				t.Errorf("%+v, %v, want %+v", got, err, want)
			}
			t.Setenv(c.variable, "75")
			wanted := c.variable + ` must be ` + c.allowed + `, got "75"`
			if _, err := openFake(newFakeDriver(t), Options{}); err == nil || !strings.Contains(err.Error(), wanted) {
				t.Errorf("want %s, got %v", wanted, err)
			}
			if _, _, err := Predict(elementwiseStep(100, 1), H200, FP32); err == nil || !strings.Contains(err.Error(), wanted) {
				t.Errorf("want %s, got %v", wanted, err)
			}
		})
	}
}

// TestCapabilityIsLimited: a device assumes at most the capability of the variable, and its name
// shows that. The capability that the driver reports does not change.
func TestCapabilityIsLimited(t *testing.T) {
	noSwitches(t)
	for _, c := range []struct {
		major        int32
		limit        string
		assumed      int
		name, source string
		dependent    bool
	}{
		{9, "", 90, "compute capability 9.0,", "new", true},
		{9, "90", 90, "compute capability 9.0,", "new", true},
		{9, "80", 80, "compute capability 9.0 limited to 8.0,", "old", false},
		{9, "70", 70, "compute capability 9.0 limited to 7.0,", "old", false},
		{8, "90", 80, "compute capability 8.0,", "old", false},
	} {
		t.Setenv(CapabilityVariable, c.limit)
		d := newFakeDriver(t)
		d.major = c.major
		device := mustOpenFake(t, d, Options{})
		g := device.gpus[0]
		if g.capability() != c.assumed || g.Major != int(c.major) || g.kernelFiles["toy_scale_f32"].head != c.source || g.pdl != c.dependent ||
			!strings.Contains(device.Name(), c.name) {
			t.Errorf("%+v: %s assumes %d and takes the %s source", c, device.Name(), g.capability(), g.kernelFiles["toy_scale_f32"].head)
		}
		if err := device.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Setenv(CapabilityVariable, "70")
	want := "precision bf16 needs compute capability 8.0, GPU 0 (fake) has 9.0 limited to 7.0"
	if _, err := openFake(newFakeDriver(t), Options{Precision: BF16}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("want %q, got %v", want, err)
	}
	t.Setenv(CapabilityVariable, "90")
	old := newFakeDriver(t)
	old.major = 6
	if _, err := openFake(old, Options{}); err == nil || !strings.Contains(err.Error(), "has compute capability 6.0") {
		t.Errorf("an old GPU: %v", err)
	}
}

// TestWithoutGraphs: without CUDA graphs, the results have the same bits. "off" waits as often as
// graphs do, "slow" after each launch.
func TestWithoutGraphs(t *testing.T) {
	noSwitches(t)
	want, waits := [][]byte(nil), map[string]int{}
	for _, value := range []string{"on", "off", "slow"} {
		t.Setenv(GraphsVariable, value)
		d := newFakeDriver(t)
		got, err := newToy(2).train(mustOpenFake(t, d, Options{}), 0, 20)
		if err != nil {
			t.Fatal(err)
		}
		if value == "on" {
			want = got
		}
		if !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("%s: other chains", value)
		}
		if graphs := d.followers > 0; graphs != (value == "on") {
			t.Errorf("%s: there are CUDA graphs: %v", value, graphs)
		}
		waits[value] = d.waits
	}
	const launches = (20 + 3 + 20) * 4
	if waits["off"] != waits["on"] || waits["slow"] < launches {
		t.Errorf("synchronisations: %v, want as many without graphs as with them, and more than %d if slow", waits, launches)
	}
	for value, names := range map[string]bool{"on": false, "off": false, "slow": true} {
		t.Setenv(GraphsVariable, value)
		d := newFakeDriver(t)
		broken := d.kernels["toy_add_f32"]
		broken.run = func([]unsafe.Pointer, int) { d.lost[0] = illegalAddress }
		d.kernels["toy_add_f32"] = broken
		_, err := newToy(1).train(mustOpenFake(t, d, Options{}), 0, 1)
		if err == nil || strings.Contains(err.Error(), "toy_add_f32 (add)") != names || strings.Contains(err.Error(), GraphsVariable+"=slow") == names {
			t.Errorf("%s: a kernel fails: %v", value, err)
		}
	}
}
