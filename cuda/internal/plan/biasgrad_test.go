package plan

import (
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/tensor"
)

// TestDeferredSum: a launch's sums are deferred to a later launch that reads the gradient anyway,
// unless a launch in between uses the sums or changes the gradient.
func TestDeferredSum(t *testing.T) {
	buffers := make([]*tensor.Buffer, 4)
	for i := range buffers {
		buffers[i] = tensor.NewBuffer("b", tensor.Scratch, tensor.Float32, 64)
		buffers[i].Offset = 256 * i
	}
	gradient, sums, other, last := buffers[0], buffers[1], buffers[2], buffers[3]
	launch := func(grid tensor.Grid, arguments ...tensor.Argument) tensor.Launch {
		return tensor.Launch{Arguments: arguments, Calls: []tensor.Call{{Grid: grid, Arguments: arguments}}}
	}
	sum := launch(tensor.Blocks{Count: 4, Threads: 32, Plane: 16}, tensor.Out(sums), tensor.In(gradient))
	passing := launch(tensor.Threads(1), tensor.Out(last), tensor.In(gradient))
	for name, c := range map[string]struct {
		first, between tensor.Launch
		passes         int
		want           bool
	}{
		"left":                   {sum, launch(tensor.Threads(1), tensor.Out(other), tensor.In(gradient)), 2, true},
		"none goes through it":   {sum, launch(tensor.Threads(1), tensor.Out(other)), 0, false},
		"the sums are read":      {sum, launch(tensor.Threads(1), tensor.Out(other), tensor.In(sums)), 2, false},
		"the gradient changes":   {sum, launch(tensor.Threads(1), tensor.InOut(gradient)), 2, false},
		"not of planes":          {launch(tensor.Block(32), tensor.Out(sums), tensor.In(gradient)), passing, 2, false},
		"of all the same memory": {sum, launch(tensor.Threads(1), tensor.Out(sums)), 2, false},
	} {
		p := &planner{firstPass: map[*tensor.Buffer]int{gradient: c.passes}}
		if got := p.deferredSum([]tensor.Launch{c.first, c.between, passing}, 0); (got != nil) != c.want {
			t.Errorf("%s: %+v", name, got)
		} else if got != nil && (got.gradient != gradient || got.plane != 16 || got.channels != 4 || got.out.Buffer != sums) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	err := checkSums([]*biasGradSum{{gradient: gradient, separate: lower}, {gradient: other}})
	if err == nil || !strings.Contains(err.Error(), "no call makes the sums of") {
		t.Errorf("got %v", err)
	}
	if err := checkSums(nil); err != nil {
		t.Error(err)
	}
}
