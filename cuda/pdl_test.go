//go:build linux

package cuda

import (
	"slices"
	"strings"
	"testing"
)

// TestProgrammaticEdges: if GPU, driver and variable allow it, a call that is the only one to
// follow a single call may begin before that one ends. Otherwise no call may.
func TestProgrammaticEdges(t *testing.T) {
	noSwitches(t)
	want, err := newToy(2).train(mustOpenFake(t, newFakeDriver(t), Options{}), 0, 5)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		major, version int32
		variable       string
		early          bool
	}{{9, 12040, "", true}, {12, 13000, "on", true}, {9, 12020, "on", false}, {8, 13000, "", false}, {9, 12040, "off", false}} {
		t.Setenv(PDLVariable, c.variable)
		d := newFakeDriver(t)
		d.major, d.version = c.major, c.version
		got, err := newToy(2).train(mustOpenFake(t, d, Options{}), 0, 5)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("%+v: other chains", c)
		}
		if d.inLine == 0 || d.early != d.inLine && c.early || d.early != 0 && !c.early {
			t.Errorf("%+v: %d calls begin early, %d are in line", c, d.early, d.inLine)
		}
	}
	for _, call := range []string{"cuGraphAddDependencies_v2", "cuGraphInstantiateWithFlags"} {
		for _, variable := range []string{"on", "off"} {
			t.Setenv(PDLVariable, variable)
			d := newFakeDriver(t)
			d.failCall, d.failWith = call, invalidValue
			_, err := newToy(1).train(mustOpenFake(t, d, Options{}), 0, 1)
			if variable == "off" && call == "cuGraphAddDependencies_v2" {
				if err != nil {
					t.Error(err)
				}
			} else if err == nil || strings.Contains(err.Error(), PDLVariable+"=off leaves it out") != (variable == "on") {
				t.Errorf("%s fails, the variable is %s: got %v", call, variable, err)
			}
		}
	}
	t.Setenv(PDLVariable, "never")
	if _, err := openFake(newFakeDriver(t), Options{}); err == nil || !strings.Contains(err.Error(), `POLLEN_CUDA_PDL must be on or off, got "never"`) {
		t.Errorf("got %v", err)
	}
}
