package evaluate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

var rules = []SetRule{
	{}, {Score: AdaptiveSets}, {Score: AdaptiveSets, Randomized: true}, {Score: RegularizedSets, Lambda: 0.1, KReg: 2},
	{Score: RegularizedSets, Randomized: true},
}

// splits calls use with the calibration on one part of some predictions, and with the others, for
// random splits of fresh draws.
func splits(t *testing.T, seeds, held, fresh int, draw func(random *rand.Rand, n int) *Predictions, use func(c *Calibration, p *Predictions)) {
	t.Helper()
	for seed := range uint64(seeds) {
		random := rand.New(rand.NewPCG(21, seed))
		c, err := Calibrate(draw(random, held))
		if err != nil {
			t.Fatal(err)
		}
		use(c, draw(random, fresh))
	}
}

// Every rule covers with the level, within four standard errors of the fractions over splits, and
// not with more than (n+1) level, rounded up, over n+1 where sets may be empty and scores do not
// tie.
func TestRulesCoverAsPromised(t *testing.T) {
	const seeds, held, fresh = 40, 199, 200
	draw := func(random *rand.Rand, n int) *Predictions { return world(t, random, n, 1.5, 0) }
	for _, level := range []float64{0.6, 0.9} {
		covered, size := map[string]float64{}, map[string]float64{}
		splits(t, seeds, held, fresh, draw, func(c *Calibration, p *Predictions) {
			for _, rule := range rules {
				for _, rule.AllowEmpty = range []bool{false, true} {
					sets, err := c.PredictionSets(p.Probabilities, p.Classes, level, rule)
					if err != nil {
						t.Fatal(err)
					}
					for n, set := range sets {
						if slices.Contains(set, int(p.Labels[n])) {
							covered[fmt.Sprint(rule, rule.AllowEmpty)]++
						}
						if set == nil && !rule.AllowEmpty {
							t.Fatalf("%v: set %d is empty", rule, n)
						}
						size[fmt.Sprint(rule, rule.AllowEmpty)] += float64(len(set)) / (seeds * fresh)
					}
				}
			}
		})
		for _, rule := range rules {
			for _, rule.AllowEmpty = range []bool{false, true} {
				key := fmt.Sprint(rule, rule.AllowEmpty)
				share := covered[key] / (seeds * fresh)
				error4 := 4 * math.Sqrt(level*(1-level)*(1.0/(seeds*fresh)+1.0/(seeds*held)))
				if share < level-error4 {
					t.Errorf("%s: coverage %v at level %v, want at least the level within %v", key, share, level, error4)
				}
				// APS without randomization has ties: all labels that are the most probable class
				// have the score 0.
				if ties := rule.Score != "" && !rule.Randomized; rule.AllowEmpty && !ties && share > level+1.0/(held+1)+error4 {
					t.Errorf("%s: coverage %v, want at most %v", key, share, level+1.0/(held+1)+error4)
				}
			}
		}
		t.Logf("level %v: sizes %v", level, size)
	}
}

// uneven draws predictions of three classes: two thirds of the images are of class 0. A ninth are
// of class 2, and are mistaken for class 1 half of the time.
func uneven(t *testing.T, random *rand.Rand, n int) *Predictions {
	var probabilities []float64
	labels := make([]int32, n)
	for i := range labels {
		labels[i] = []int32{0, 0, 0, 0, 0, 0, 1, 1, 2}[random.IntN(9)]
		z := [3]float64{random.NormFloat64(), random.NormFloat64(), random.NormFloat64()}
		z[labels[i]] += 4
		if labels[i] == 2 && random.IntN(2) == 0 {
			z[1], z[2] = z[1]+5, z[2]-4
		}
		sum := 0.0
		for k := range z {
			z[k] = math.Exp(z[k])
			sum += z[k]
		}
		for k := range z {
			probabilities = append(probabilities, z[k]/sum)
		}
	}
	return predictionsOf(t, probabilities, labels, 3)
}

// Class-conditional sets cover each class as promised; sets with one threshold do not cover the
// third one.
func TestClassesAreCovered(t *testing.T) {
	const seeds, held, fresh, level = 40, 450, 450, 0.9
	draw := func(random *rand.Rand, n int) *Predictions { return uneven(t, random, n) }
	for _, rule := range append([]SetRule{{AllowEmpty: true}}, rules...) {
		var plain, conditional, images [3]float64
		splits(t, seeds, held, fresh, draw, func(c *Calibration, p *Predictions) {
			for covered, perClass := range map[*[3]float64]bool{&plain: false, &conditional: true} {
				rule.PerClass = perClass
				s, err := c.Sets(level, rule)
				if err != nil || s.Fallbacks() != nil {
					t.Fatal(s, err)
				}
				sets, err := s.Of(p.Probabilities, p.Classes)
				if err != nil {
					t.Fatal(err)
				}
				for n, set := range sets {
					if slices.Contains(set, int(p.Labels[n])) {
						covered[p.Labels[n]]++
					}
				}
			}
			for _, label := range p.Labels {
				images[label]++
			}
		})
		for k, n := range images {
			error4 := 4 * math.Sqrt(level*(1-level)*(1/n+float64(fresh)/held/n))
			if share := conditional[k] / n; share < level-error4 {
				t.Errorf("%+v: class %d is covered with %v, want at least %v within %v", rule, k, share, level, error4)
			}
		}
		if share := plain[2] / images[2]; share > level-0.05 {
			t.Errorf("%+v: with one threshold class 2 is covered with %v: the test shows nothing", rule, share)
		}
	}
}

// No number of examples supports a level that is not between 0 and 1.
func TestNeededExamplesOfNoLevel(t *testing.T) {
	for _, level := range []float64{0, 1, 2, -1, math.NaN(), math.Inf(1)} {
		if n := NeededExamples(level); n != math.MaxInt {
			t.Errorf("NeededExamples(%v) = %d", level, n)
		}
	}
	if n := NeededExamples(1e-12); n != 1 {
		t.Errorf("NeededExamples of nearly 0 = %d, want 1", n)
	}
}

// NeededExamples is the smallest number of examples that supports a level, also for levels near 1.
func TestNeededExamplesAreEnough(t *testing.T) {
	for _, tail := range []float64{0.5, 0.3, 0.1, 0.07, 0.05, 0.01, 0.003, 0.001, 0.0005, 0.0001, 0.00008, 0.00005, 0.00001} {
		n := NeededExamples(1 - tail)
		for examples, want := range map[int]bool{n - 1: false, n: true} {
			if c := (&Calibration{Examples: examples}); c.Supports(1-tail) != want {
				t.Errorf("level %v needs %d examples, but that %d support it is %t", 1-tail, n, examples, !want)
			}
		}
	}
}

// A class has a threshold of its own exactly from ceil((n+1) level) <= n examples on.
func TestFewExamplesOfAClass(t *testing.T) {
	for _, level := range []float64{0.5, 0.8, 0.9, 0.95, 0.99} {
		needed := NeededExamples(level)
		if math.Ceil(float64(needed+1)*level-1e-9) > float64(needed) || math.Ceil(float64(needed)*level-1e-9) <= float64(needed-1) {
			t.Errorf("NeededExamples(%v) = %d, which is not the smallest n with ceil((n+1) level) <= n", level, needed)
		}
		for _, few := range []int{0, needed - 1, needed} {
			var probabilities []float64
			var labels []int32
			for i := range 200 {
				p := float64(i+1) / 250
				probabilities, labels = append(probabilities, p, 1-p), append(labels, 0)
			}
			for range few {
				probabilities, labels = append(probabilities, 0.25, 0.75), append(labels, 1)
			}
			c, err := Calibrate(predictionsOf(t, probabilities, labels, 2))
			if err != nil {
				t.Fatal(err)
			}
			s, err := c.Sets(level, SetRule{PerClass: true})
			if err != nil {
				t.Fatal(err)
			}
			want := ClassThreshold{Class: 1, Examples: few, Needed: needed, Score: s.Marginal, Marginal: true}
			if few == needed {
				want.Score, want.Marginal = -0.75, false
			}
			if got := s.Thresholds[1]; got != want || len(s.Fallbacks()) != 1 && few < needed {
				t.Errorf("level %v, %d examples: %+v, want %+v", level, few, got, want)
			}
		}
	}
}

func TestAdaptiveSetsWorkedByHand(t *testing.T) {
	// Of the labels, ranks are 1, 2, 3 and 1; the classes above have 0, .5, .8 and 0.
	c, err := Calibrate(predictionsOf(t, []float64{
		0.9, 0.1, 0,
		0.5, 0.3, 0.2,
		0.5, 0.3, 0.2,
		0.6, 0.4, 0,
	}, []int32{0, 1, 2, 0}, 3))
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(c.Class, c.Label, c.Rank, c.Above, c.Confidence); got != "[0 0 1 2] [0.9 0.6 0.3 0.2] [1 1 2 3] [0 0 0.5 0.8] [0.9 0.6 0.5 0.5]" {
		t.Errorf("columns %s", got)
	}
	rows := []float64{0.45, 0.35, 0.2, 0.3, 0.6, 0.1}
	for _, test := range []struct {
		rule  string
		level float64
		want  string
		score float64
	}{
		{"aps", 0.5, "[[0 1] [1]]", 0.5}, // rank 3 of 0, 0, .5, .8: classes with at most .5 above them
		{"aps", 0.4, "[[0] [1]]", 0},
		{"raps:lambda=0.2,kreg=1", 0.5, "[[0 1] [1]]", 0.7}, // .5 + .2; scores are 0, .65, 1.2 and 0, .8, 1.3
		{"raps:lambda=0.2,kreg=1", 0.8, "[[0 1 2] [1 0]]", 1.2},
	} {
		rule, err := ParseSetScore(test.rule)
		if err != nil || rule.String() != test.rule {
			t.Fatal(rule, err)
		}
		s, err := c.Sets(test.level, rule)
		if err != nil {
			t.Fatal(err)
		}
		sets, err := s.Of(rows, 3)
		if got := fmt.Sprint(sets); err != nil || got != test.want || math.Abs(s.Marginal-test.score) > 1e-15 {
			t.Errorf("%s at %v: %s at scores up to %v (%v), want %s up to %v", test.rule, test.level, got, s.Marginal, err, test.want, test.score)
		}
	}
}

func TestParseSetScore(t *testing.T) {
	for text, message := range map[string]string{
		"cumulative": `must be threshold, aps or raps, got "cumulative"`, "threshold:randomized": "Randomized applies to aps and raps",
		"aps:lambda=1": "apply to raps, not to aps", "raps:lambda=-1,kreg=2": "must not be negative, got -1 and 2", "raps:kreg=x": "invalid syntax",
		"raps:k=2": `no attribute "k=2"`, "aps:": `no attribute ""`,
	} {
		_, err := ParseSetScore(text)
		refused(t, text, err, message)
	}
	for _, rule := range rules {
		if back, err := ParseSetScore(rule.String()); err != nil || back.String() != rule.String() {
			t.Errorf("%v: read as %v, %v", rule, back, err)
		}
	}
}

// The u of randomized sets is uniform, and the same for the same probabilities.
func TestUniform(t *testing.T) {
	random := rand.New(rand.NewPCG(22, 0))
	const n = 4000
	var values []float64
	for range n {
		p := random.Float64()
		row := []float64{p, 1 - p}
		values = append(values, uniform(row))
		if again := uniform(slices.Clone(row)); again != values[len(values)-1] {
			t.Fatalf("uniform(%v) is %v and %v", row, values[len(values)-1], again)
		}
	}
	slices.Sort(values)
	furthest := 0.0
	for i, v := range values {
		furthest = max(furthest, math.Abs(v-float64(i)/n), math.Abs(v-float64(i+1)/n))
	}
	if limit := 1.63 / math.Sqrt(n); furthest > limit { // Kolmogorov and Smirnov at 1 %
		t.Errorf("the distribution deviates by %v, want at most %v", furthest, limit)
	}
}

// Of more examples than are kept, a subset is used that does not depend on what they are.
func TestManyHeldOutExamples(t *testing.T) {
	kept := keptExamples(maxHeldOut + 10_000)
	slices.Sort(kept)
	if kept = slices.Compact(kept); len(kept) != maxHeldOut || kept[len(kept)-1] < maxHeldOut {
		t.Errorf("%d different examples up to %d, want %d of all", len(kept), kept[len(kept)-1], maxHeldOut)
	}
	if kept := keptExamples(3); !slices.Equal(kept, []int{0, 1, 2}) {
		t.Errorf("of 3 examples got %v", kept)
	}
}

// Frames of a video have the same prediction and are right or wrong together. Counting one frame of
// each keeps the promises of class-conditional sets and of certified risks, and counting all of
// them does not.
func TestGroupsCountOnce(t *testing.T) {
	const seeds, videos, frames, level, risk = 200, 60, 10, 0.9, 0.1
	draw := func(random *rand.Rand, groups bool) *Predictions {
		var probabilities []float64
		var labels []int32
		var names []string
		for video := range videos {
			p := 0.5 + random.Float64()/2
			label := int32(0)
			if random.Float64() < 0.11 { // of any confidence
				label = 1
			}
			for range frames {
				probabilities, labels, names = append(probabilities, p, 1-p), append(labels, label), append(names, fmt.Sprint(video))
			}
		}
		p := predictionsOf(t, probabilities, labels, 2)
		if groups {
			p.Groups = names
		}
		return p
	}
	for groups, most := range map[bool]int{true: 2 * seeds * (100 - 90) / 100, false: seeds} {
		violations, covered, images := 0, 0, 0
		for seed := range uint64(seeds) {
			random := rand.New(rand.NewPCG(23, seed))
			c, err := Calibrate(draw(random, groups))
			if err != nil {
				t.Fatal(err)
			}
			certificate, err := c.Certify(risk, 0.9)
			if err != nil {
				t.Fatal(err)
			}
			if certificate.Certified { // the risk is .11 at every threshold
				violations++
			}
			s, err := c.Sets(level, SetRule{PerClass: true, AllowEmpty: true})
			if err != nil {
				t.Fatal(err)
			}
			want := map[bool]int{true: videos, false: videos * frames}[groups]
			if s.Thresholds[0].Examples+s.Thresholds[1].Examples != want || certificate.Images != want {
				t.Fatalf("%+v and %+v count other than %d", s.Thresholds, certificate, want)
			}
			p := draw(random, false)
			sets, err := s.Of(p.Probabilities, 2)
			if err != nil {
				t.Fatal(err)
			}
			for n, set := range sets {
				if p.Labels[n] == 0 {
					images++
					if slices.Contains(set, 0) {
						covered++
					}
				}
			}
		}
		t.Logf("groups %v: %d of %d certified, class 0 is covered with %.4f", groups, violations, seeds, float64(covered)/float64(images))
		if violations > most || !groups && violations < seeds/4 {
			t.Errorf("groups %v: %d of %d risks are certified wrongly", groups, violations, seeds)
		}
		if share := float64(covered) / float64(images); groups && share < level-0.015 {
			t.Errorf("class 0 is covered with %v, want %v", share, level)
		}
	}
	c, err := Calibrate(draw(rand.New(rand.NewPCG(23, 0)), true))
	if err != nil {
		t.Fatal(err)
	}
	c.Single = c.Single[:1]
	_, err = c.Certify(risk, 0.9)
	refused(t, "single", err, "must have a single and a singleOfClass for each of 600 examples, got 1 and 600")
	p := draw(rand.New(rand.NewPCG(23, 0)), true)
	p.Groups = p.Groups[1:]
	_, err = Calibrate(p)
	refused(t, "groups", err, "one for each of 600 examples, got 599")
}

// Groups contain images of several classes, and few of one of them. Its threshold counts every
// group that has the class, and covers the class in a new group.
func TestRareClassInGroups(t *testing.T) {
	const seeds, patients, common, level = 300, 40, 9, 0.9
	draw := func(random *rand.Rand) *Predictions {
		var probabilities []float64
		var labels []int32
		var names []string
		for patient := range patients {
			shift := 0.3 * random.Float64() // of all images of the patient
			for i := range common + 1 {
				label, of := int32(0), 0.7*random.Float64()+shift
				if i == common {
					label, of = 1, 0.6*random.Float64()+shift
				}
				row := []float64{1 - of, of}
				if label == 0 {
					row = []float64{of, 1 - of}
				}
				probabilities, labels, names = append(probabilities, row...), append(labels, label), append(names, fmt.Sprint(patient))
			}
		}
		p := predictionsOf(t, probabilities, labels, 2)
		p.Groups = names
		return p
	}
	covered := [2]int{}
	for seed := range uint64(seeds) {
		random := rand.New(rand.NewPCG(29, seed))
		c, err := Calibrate(draw(random))
		if err != nil {
			t.Fatal(err)
		}
		s, err := c.Sets(level, SetRule{PerClass: true, AllowEmpty: true})
		if err != nil {
			t.Fatal(err)
		}
		if a, b := s.Thresholds[0], s.Thresholds[1]; a.Examples != patients || b.Examples != patients {
			t.Fatalf("thresholds from %d and %d groups, want %d", a.Examples, b.Examples, patients)
		}
		p := draw(random)
		sets, err := s.Of(p.Probabilities, 2)
		if err != nil {
			t.Fatal(err)
		}
		for n, set := range sets {
			if label := p.Labels[n]; slices.Contains(set, int(label)) {
				covered[label]++
			}
		}
	}
	for class, images := range []int{seeds * patients * common, seeds * patients} {
		// The rank of 37 of 41 covers .902.
		if share := float64(covered[class]) / float64(images); math.Abs(share-37.0/41) > 0.012 {
			t.Errorf("class %d is covered with %.4f, want %.4f", class, share, 37.0/41)
		}
	}
}
