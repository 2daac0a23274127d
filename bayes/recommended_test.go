package bayes

import (
	"cmp"
	"testing"

	"github.com/pollen-ml/pollen/internal/pretrained"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/optimizers"
)

// Without a method, fewer images get more chains, each of up to 250 steps after a warm start of up
// to 1000.
func TestRecommended(t *testing.T) {
	for _, c := range []struct {
		spec                                               Spec
		examples, chains, epochs, warm, burnIn, samples, n int
		schedule                                           string
	}{
		{Spec{}, 1000, 12, 25, 100, 22, 4, 1, "cyclical:0.06,1"},
		{Spec{}, 2000, 12, 13, 50, 11, 4, 1, "cyclical:0.06,1"},
		{Spec{Subset: 1000}, 60_000, 12, 25, 100, 22, 4, 1, "cyclical:0.06,1"},
		{Spec{}, 6000, 8, 10, 17, 9, 4, 1, "cyclical:0.06,1"},
		{Spec{}, 60_000, 4, 10, 5, 9, 8, 1, "cyclical:0.06,1"},
		{Spec{Network: "cnn"}, 376, 12, 25, 99, 22, 4, 1, "cyclical:0.03,1"},
		{Spec{Batch: 1000}, 1000, 12, 250, 100, 225, 4, 1, "cyclical:0.06,1"},
		{Spec{Epochs: 4}, 1000, 12, 4, 100, 3, 4, 1, "cyclical:0.06,1"},
		{Spec{Epochs: 1, Chains: 2, Samples: 3}, 1000, 2, 1, 100, 0, 3, 1, "cyclical:0.06,1"},
		// Fields that are given keep their values.
		{Spec{Cycles: 4, Epochs: 40}, 1000, 12, 40, 100, 9, 4, 4, "cyclical:0.0126,4"},
		{Spec{Chains: 2}, 1000, 2, 25, 100, 22, 16, 1, "cyclical:0.06,1"},
		// A step has at most one sample.
		{Spec{Chains: 2, Epochs: 4}, 100, 2, 4, 100, 3, 10, 1, "cyclical:0.06,1"},
		{Spec{WarmEpochs: 3}, 1000, 12, 25, 3, 22, 4, 1, "cyclical:0.06,1"},
		// A cycle begins at the highest rate of the warm start, if that is by momentum.
		{Spec{WarmSchedule: optimizers.Constant{Rate: 0.01}}, 1000, 12, 25, 100, 22, 4, 1, "cyclical:0.01,1"},
		{Spec{WarmSchedule: optimizers.WarmUp{Steps: 50, Then: optimizers.Cosine{First: 0.02}}}, 1000, 12, 25, 100, 22, 4, 1, "cyclical:0.02,1"},
		{Spec{WarmStart: optimizers.SGD{}, WarmSchedule: optimizers.Constant{Rate: 0.5}}, 1000, 12, 25, 100, 22, 4, 1, "cyclical:0.06,1"},
		// With a burn-in or a schedule, chains have no cycles.
		{Spec{BurnIn: new(10)}, 1000, 4, 100, 100, 10, 10, 0, "constant:0.0063"},
		{Spec{Schedule: optimizers.Constant{Rate: 0.01}}, 1000, 4, 100, 100, 38, 10, 0, "constant:0.01"},
	} {
		s, err := c.spec.resolve(c.examples)
		if err != nil {
			t.Errorf("%+v, %d examples: %v", c.spec, c.examples, err)
			continue
		}
		if s.Chains != c.chains || s.Epochs != c.epochs || s.WarmEpochs != c.warm || *s.BurnIn != c.burnIn || s.Samples != c.samples || s.Cycles != c.n ||
			s.Schedule.String() != c.schedule {
			t.Errorf("%+v, %d examples: %d chains of %d epochs, warm start of %d, burn-in %d, %d samples, %d cycles, %v, want %+v", c.spec, c.examples,
				s.Chains, s.Epochs, s.WarmEpochs, *s.BurnIn, s.Samples, s.Cycles, s.Schedule, c)
		}
		prior := recommendedPrior
		if c.n == 0 {
			prior = customaryPrior
		}
		if *s.Prior != prior {
			t.Errorf("%+v: prior %v, want %v", c.spec, *s.Prior, prior)
		}
	}
	for _, c := range []struct {
		spec           Spec
		examples       int
		want, schedule string
		patience       int
	}{
		{Spec{}, 1000, "momentum:decay=0.9", "warmup:50,constant:0.06", 20},
		{Spec{}, 60_000, "momentum:decay=0.9", "warmup:50,constant:0.06", 1},
		{Spec{Network: "cnn"}, 376, "momentum:decay=0.9", "warmup:50,constant:0.03", 20},
		{Spec{WarmEpochs: 3}, 1000, "momentum:decay=0.9", "constant:0.06", 3}, // too short for a warm-up
		{Spec{BurnIn: new(10)}, 1000, "momentum:decay=0.9", "warmup:50,constant:0.06", 20},
		// An optimizer that is given has its own schedule.
		{Spec{WarmStart: optimizers.Adam{Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}}, 1000, "adam:beta1=0.9,beta2=0.999,epsilon=1e-08",
			"constant:0.001", 20},
	} {
		s, err := c.spec.resolve(c.examples)
		if err != nil || MethodText(s.WarmStart) != c.want || s.WarmSchedule.String() != c.schedule || s.WarmPatience != c.patience {
			t.Errorf("%d examples: warm start by %s, %v, with a patience of %d epochs, want %s, %s, %d (%v)", c.examples, MethodText(s.WarmStart),
				s.WarmSchedule, s.WarmPatience, c.want, c.schedule, c.patience, err)
		}
	}
	given := langevin.Laplace(0.1)
	s, err := Spec{Prior: &given}.resolve(1000)
	if err != nil || *s.Prior != given {
		t.Errorf("prior %v, want %v (%v)", s.Prior, given, err)
	}
}

// Without a method, images are shifted by up to 1/14 of their side, or 1/28 for large data sets,
// unless Augment is given or another field needs a deterministic potential.
func TestRecommendedShift(t *testing.T) {
	for _, c := range []struct {
		spec           Spec
		examples, side int
		want           string
	}{
		{Spec{}, 1000, 28, "shift=2"},
		{Spec{}, 60_000, 28, "shift=1"},
		{Spec{Subset: 1000}, 60_000, 28, "shift=2"},
		{Spec{}, 1000, 64, "shift=4"},
		{Spec{}, 60_000, 64, "shift=2"},
		{Spec{}, 1000, 13, "none"},
		{Spec{Cycles: 4}, 1000, 28, "shift=2"},
		{Spec{Augment: &Augment{}}, 1000, 28, "none"},
		{Spec{Augment: &Augment{Flip: true}}, 1000, 28, "flip"},
		{Spec{Schedule: optimizers.Constant{Rate: 0.01}}, 1000, 28, ""},
		{Spec{Temperatures: []float64{1, 1.1}}, 1000, 28, ""},
		{Spec{Anchor: 1, Cycles: 2}, 1000, 28, ""},
		{Spec{Method: langevin.SGLD{}}, 1000, 28, ""},
	} {
		if got := c.spec.recommended(true, c.examples, c.side).Texts()["augment"]; got != c.want {
			t.Errorf("%+v, %d examples, %d pixels: augment %q, want %q", c.spec, c.examples, c.side, got, c.want)
		}
	}
}

// Without a method, Adam trains an ensemble of a pretrained network whose weights are not frozen,
// at a rate that falls to 0, and the last layer starts at small weights.
func TestRecommendedTuning(t *testing.T) {
	for _, c := range []struct {
		spec                     Spec
		examples, chains, epochs int
		schedule, augment        string
	}{
		{Spec{}, 752, 4, 10, "warmup:10,cosine:0.0001,0", "shift=9"},
		{Spec{}, 10_000, 4, 5, "warmup:50,cosine:0.0001,0", "shift=9"},
		{Spec{}, 40_000, 4, 5, "warmup:50,cosine:0.0001,0", "shift=4"},
		{Spec{Freeze: "stem"}, 752, 4, 10, "warmup:10,cosine:0.0001,0", "shift=9"},
		{Spec{Batch: 752}, 752, 4, 100, "warmup:10,cosine:0.0001,0", "shift=9"},
		// Fields that are given keep their values.
		{Spec{Chains: 1, Epochs: 3}, 752, 1, 3, "warmup:3,cosine:0.0001,0", "shift=9"},
		{Spec{Epochs: 1, Batch: 100}, 752, 4, 1, "cosine:0.0001,0", "shift=9"},
		{Spec{Schedule: optimizers.Constant{Rate: 0.01}, Augment: &Augment{Flip: true}}, 752, 4, 10, "constant:0.01", "flip"},
	} {
		c.spec.Network, c.spec.Freeze = "backbone.onnx", cmp.Or(c.spec.Freeze, pretrained.FreezeNone)
		s := c.spec.recommended(true, c.examples, 128)
		if MethodName(s.Method) != "adam" || s.Chains != c.chains || s.Epochs != c.epochs || s.Schedule.String() != c.schedule || s.Texts()["augment"] != c.augment {
			t.Errorf("%d examples: %s with %d chains of %d epochs, %v, augment %s, want %+v", c.examples, MethodName(s.Method), s.Chains, s.Epochs,
				s.Schedule, s.Texts()["augment"], c)
		}
	}
	// A field that only samplers have is not refused, but selects a sampler at its customary rate.
	prior := langevin.Start(0.1)
	for _, c := range []struct {
		spec Spec
		want string
	}{
		{Spec{Prior: &prior}, "sghmc"}, {Spec{Samples: 8}, "sghmc"}, {Spec{BurnIn: new(2)}, "sghmc"}, {Spec{Cycles: 2}, "sghmc"},
		{Spec{Temperatures: []float64{1, 1.1}}, "sgld"},
	} {
		c.spec.Network, c.spec.Freeze = "backbone.onnx", pretrained.FreezeNone
		s := c.spec.recommended(true, 752, 128)
		if MethodName(s.Method) != c.want || s.Chains != 4 || s.WarmStart != nil || s.Schedule != nil || s.Augment != nil {
			t.Errorf("%+v: %s with %d chains, want %s with 4 and no more defaults", c.spec, MethodName(s.Method), s.Chains, c.want)
		}
	}
	small := layers.Normal{Std: tunedHeadStd}
	for _, c := range []struct {
		head, freeze string
		want         layers.Initializer
	}{{"linear", "none", small}, {"mlp:8", "none", small}, {"linear", "stem", small}, {"linear", "all", nil}, {"mlp:8", "all", nil}} {
		network, err := Spec{Network: "backbone.onnx", Head: c.head, Freeze: c.freeze}.headNetwork(3)
		if err != nil {
			t.Fatal(err)
		}
		if last := network[len(network)-1].(layers.Linear); last.Weight != c.want {
			t.Errorf("head %s, freeze %s: the last layer starts at %v, want %v", c.head, c.freeze, last.Weight, c.want)
		}
	}
}

// TestRecommendedSteps: 12 chains of up to 125 epochs of 10 steps, and 4 of up to 15 of 600; 4
// chains of 10 epochs of 10 steps for a pretrained network, whose head has no number of steps.
func TestRecommendedSteps(t *testing.T) {
	tuned, frozen := Spec{Network: "backbone.onnx", Freeze: pretrained.FreezeNone}, Spec{Network: "backbone.onnx"}
	for _, c := range []struct {
		spec           Spec
		examples, want int
	}{{Spec{}, 1000, 15_000}, {Spec{}, 60_000, 36_000}, {tuned, 1000, 400}, {frozen, 1000, 0}} {
		if got := RecommendedSteps(c.spec, c.examples); got != c.want {
			t.Errorf("%+v, %d examples: %d steps, want %d", c.spec, c.examples, got, c.want)
		}
	}
}
