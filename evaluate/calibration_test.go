package evaluate

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	_ "github.com/pollen-ml/pollen/internal/fixedseed"
)

// world draws labelled predictions: logits of a width, pulled towards the label, which are off by
// a factor, so that the probabilities are not calibrated; rounded to a grid if they are to tie, to
// exact zeros and ones if they are to saturate.
func world(t *testing.T, random *rand.Rand, examples int, sharpness, grid float64) *Predictions {
	t.Helper()
	const classes = 5
	probabilities := make([]float64, 0, examples*classes)
	labels := make([]int32, examples)
	for n := range labels {
		labels[n] = int32(random.IntN(classes))
		row := make([]float64, classes)
		sum := 0.0
		for k := range row {
			z := random.NormFloat64()
			if k == int(labels[n]) {
				z += 2
			}
			row[k] = math.Exp(sharpness * z)
			sum += row[k]
		}
		for k := range row {
			row[k] /= sum
		}
		if grid > 0 {
			sum = 0
			for k := range row {
				row[k] = math.Round(row[k]*grid) / grid
				sum += row[k]
			}
			top, _ := largest(row)
			row[top] += 1 - sum
		}
		probabilities = append(probabilities, row...)
	}
	p := predictionsOf(t, probabilities, labels, classes)
	p.Nonconformity = p.Entropy
	return p
}

var worlds = []struct {
	name            string
	sharpness, grid float64
}{{"smooth", 1, 0}, {"overconfident", 8, 0}, {"tied", 1, 10}, {"saturated", 100, 4}, {"two values", 30, 1}}

// Over 20 seeds and fresh examples, the fraction of sets that have the label is not below the level
// by more than chance allows, and without ties not above it by more either. A fraction of m fresh
// examples with n held out has a variance of about level (1 - level) (1/m + 1/n).
func TestSetsCoverAsPromised(t *testing.T) {
	const seeds, held, fresh = 20, 500, 500
	for _, w := range worlds {
		for _, level := range []float64{0.5, 0.8, 0.9, 0.95, 0.99} {
			covered := 0.0
			for seed := range uint64(seeds) {
				random := rand.New(rand.NewPCG(11, seed))
				c, err := Calibrate(world(t, random, held, w.sharpness, w.grid))
				if err != nil {
					t.Fatal(err)
				}
				p := world(t, random, fresh, w.sharpness, w.grid)
				sets, err := c.PredictionSets(p.Probabilities, p.Classes, level, SetRule{AllowEmpty: true})
				if err != nil {
					t.Fatal(err)
				}
				for n, set := range sets {
					if slices.Contains(set, int(p.Labels[n])) {
						covered++
					}
				}
			}
			share := covered / (seeds * fresh)
			error4 := 4 * math.Sqrt(level*(1-level)*(1.0/(seeds*fresh)+1.0/(seeds*held)))
			if share < level-error4 {
				t.Errorf("%s: coverage %v, want at least %v within %v", w.name, share, level, error4)
			}
			if w.grid == 0 && share > level+1.0/held+error4 {
				t.Errorf("%s: coverage %v, want at most %v within %v: sets are larger than they need be", w.name, share, level, error4)
			}
		}
	}
}

func TestFamiliarAcceptsAsPromised(t *testing.T) {
	const seeds, held, fresh = 20, 400, 400
	for _, w := range worlds {
		for _, rate := range []float64{0.8, 0.95} {
			accepted := 0.0
			for seed := range uint64(seeds) {
				random := rand.New(rand.NewPCG(12, seed))
				c, err := Calibrate(world(t, random, held, w.sharpness, w.grid))
				if err != nil {
					t.Fatal(err)
				}
				inDistribution, err := c.InDistribution(world(t, random, fresh, w.sharpness, w.grid).Nonconformity, rate)
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range inDistribution {
					if f {
						accepted++
					}
				}
			}
			share := accepted / (seeds * fresh)
			if share < rate-0.02 || w.grid == 0 && share > rate+0.02 {
				t.Errorf("%s: %v of new in-distribution examples are accepted, want %v within 0.02", w.name, share, rate)
			}
		}
	}
}

// The threshold at every level is the order statistic of the definition.
func TestThresholdsAreOrderStatistics(t *testing.T) {
	for _, examples := range []int{1, 2, 19, 20, 99, 257, 999, 1000, 1001, 2500} {
		p := world(t, rand.New(rand.NewPCG(13, uint64(examples))), examples, 1, 0)
		c, err := Calibrate(p)
		if err != nil {
			t.Fatal(err)
		}
		entropy := slices.Sorted(slices.Values(p.Nonconformity))
		for percent := 1; percent < 100; percent++ {
			level := float64(percent) / 100
			// (n+1) percent / 100, rounded up, in integers.
			rank := ((examples+1)*percent + 99) / 100
			if got, want := c.Supports(level), rank <= examples; got != want {
				t.Fatalf("%d examples, level %v: supported %v, want %v", examples, level, got, want)
			}
			threshold, err := c.NonconformityThreshold(level)
			if rank > examples {
				if err == nil {
					t.Errorf("%d examples, level %v: got %v, want an error", examples, level, threshold)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if threshold != entropy[rank-1] {
				t.Errorf("%d examples, level %v: threshold %v, want rank %d, %v", examples, level, threshold, rank, entropy[rank-1])
			}
			probability, err := c.ProbabilityThreshold(level)
			if err != nil {
				t.Fatal(err)
			}
			covered := 0
			for n, label := range p.Labels {
				if p.row(n)[label] >= probability {
					covered++
				}
			}
			if covered != rank {
				t.Errorf("%d examples, level %v: %d held-out labels reach the threshold, want %d", examples, level, covered, rank)
			}
		}
	}
}

// PredictionSets are nested: the set of a level lies in the sets of higher levels; classes have
// falling probability, each once.
func TestSetsProperties(t *testing.T) {
	held := world(t, rand.New(rand.NewPCG(14, 1)), 300, 1, 20)
	c, err := Calibrate(held)
	if err != nil {
		t.Fatal(err)
	}
	fresh := world(t, rand.New(rand.NewPCG(14, 2)), 50, 1, 20)
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.Float64Range(0.01, 0.99).Draw(t, "low")
		high := rapid.Float64Range(low, 0.99).Draw(t, "high")
		small, err := c.PredictionSets(fresh.Probabilities, fresh.Classes, low, SetRule{AllowEmpty: true})
		if err != nil {
			t.Fatal(err)
		}
		large, err := c.PredictionSets(fresh.Probabilities, fresh.Classes, high, SetRule{AllowEmpty: true})
		if err != nil {
			t.Fatal(err)
		}
		for n := range small {
			if len(small[n]) > len(large[n]) || !slices.Equal(small[n], large[n][:len(small[n])]) {
				t.Fatalf("example %d: %v at level %v, %v at %v", n, small[n], low, large[n], high)
			}
			for i, k := range large[n] {
				if i > 0 && (fresh.row(n)[k] > fresh.row(n)[large[n][i-1]] || slices.Contains(large[n][:i], k)) {
					t.Fatalf("example %d: %v of %v is not in order", n, large[n], fresh.row(n))
				}
			}
		}
	})
}

func TestSetsWorkedByHand(t *testing.T) {
	// Four held-out labels have the probabilities .9, .8, .6 and .3; level .6 takes rank 3.
	c, err := Calibrate(predictionsOf(t, []float64{
		0.9, 0.1, 0,
		0.1, 0.8, 0.1,
		0.6, 0.4, 0,
		0.5, 0.2, 0.3,
	}, []int32{0, 1, 0, 2}, 3))
	if err != nil {
		t.Fatal(err)
	}
	sets, err := c.PredictionSets([]float64{0.7, 0.2, 0.1, 0.5, 0.5, 0, 0.4, 0, 0.6}, 3, 0.6, SetRule{AllowEmpty: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(sets); got != "[[0] [] [2]]" {
		t.Errorf("got sets %v, want [[0] [] [2]]", got)
	}
	// Level .8 takes rank 4, the probability .3.
	if sets, err = c.PredictionSets([]float64{0.4, 0.2, 0.4, 0.3, 0.3, 0.4}, 3, 0.8, SetRule{AllowEmpty: true}); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(sets); got != "[[0 2] [2 0 1]]" {
		t.Errorf("got sets %v, want [[0 2] [2 0 1]]", got)
	}
}

func TestCalibrationIsTheSameAfterJSON(t *testing.T) {
	for _, examples := range []int{1, 30, 1700} {
		c, err := Calibrate(world(t, rand.New(rand.NewPCG(15, 1)), examples, 8, 0))
		if err != nil {
			t.Fatal(err)
		}
		content, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if len(content) > 2000+150*examples {
			t.Errorf("%d examples: %d bytes, want a small file", examples, len(content))
		}
		var back Calibration
		if err := json.Unmarshal(content, &back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c, &back); diff != "" {
			t.Error(diff)
		}
	}
}

func TestCalibrationRefuses(t *testing.T) {
	good := predictionsOf(t, []float64{0.9, 0.1, 0.2, 0.8}, []int32{0, 1}, 2)
	good.Nonconformity = good.Entropy
	c, err := Calibrate(good)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Calibrate(nil)
	refused(t, "no predictions", err, "Calibrate: predictions must not be nil")
	_, err = Calibrate(&Predictions{})
	refused(t, "empty predictions", err, "at least 2 classes, got 0")
	_, err = Calibrate(predictionsOf(t, good.Probabilities, nil, 2))
	refused(t, "no labels", err, "Calibrate: must have labels")
	foreign := *good
	foreign.Labels = []int32{0, 2}
	_, err = Calibrate(&foreign)
	refused(t, "label", err, "example 1: label must be 0 or more and below 2, got 2")
	for _, level := range []float64{-1, 0, 1, math.NaN()} {
		_, err = c.PredictionSets(good.Probabilities, 2, level, SetRule{AllowEmpty: true})
		refused(t, "level", err, "must be between 0 and 1")
		_, err = c.InDistribution(good.Nonconformity, level)
		refused(t, "rate", err, "must be between 0 and 1")
	}
	_, err = c.PredictionSets(good.Probabilities, 2, 0.95, SetRule{AllowEmpty: true})
	refused(t, "few", err, "level 0.95 needs at least 19 held-out examples, data has 2")
	_, err = c.InDistribution(good.Nonconformity, 0.9)
	refused(t, "few", err, "level 0.9 needs at least 9 held-out")
	_, err = c.PredictionSets([]float64{1, 0, 0}, 3, 0.5, SetRule{AllowEmpty: true})
	refused(t, "classes", err, "must have the calibration's 2 classes, got 3")
	_, err = c.PredictionSets([]float64{1, 0.5}, 2, 0.5, SetRule{AllowEmpty: true})
	refused(t, "row", err, "sum to 1 within 0.0001, got 1.5")
	_, err = c.InDistribution([]float64{0, math.NaN()}, 0.5)
	refused(t, "NaN", err, "score 1 is NaN")
	without := *c
	without.Nonconformity = nil
	_, err = without.InDistribution(good.Nonconformity, 0.5)
	refused(t, "no detector", err, "calibrated without nonconformity scores")
	untested := *c
	untested.SelfTest = &SelfTest{}
	_, err = untested.InDistribution(good.Nonconformity, 0.5)
	refused(t, "self-test", err, "at least one kind")
	untested.SelfTest = &SelfTest{Kinds: []StrangeImages{{"noise", 2, 3}}}
	_, err = untested.InDistribution(good.Nonconformity, 0.5)
	refused(t, "self-test", err, "of noise, the accepted images must be from 0 to 2")
	for name, broken := range map[string]Calibration{
		"nothing": {},
		"vast":    {Examples: math.MaxInt, Classes: 2},
	} {
		_, err = broken.InDistribution([]float64{0}, 0.5)
		refused(t, name, err, "calibration")
	}
	for name, edit := range map[string]func(c *Calibration){
		"rank for each of 2 examples, got 1": func(c *Calibration) { c.Rank = c.Rank[:1] },
		"descending":                         func(c *Calibration) { c.Label = []float64{0.1, 0.9} },
		"1.5":                                func(c *Calibration) { c.Label = []float64{1.5, 0.9} },
		"rank":                               func(c *Calibration) { c.Rank = []int{1, 3} },
		"class":                              func(c *Calibration) { c.Class = []int32{1, 2} },
		"above":                              func(c *Calibration) { c.Above = []float64{0, math.NaN()} },
		"uniform":                            func(c *Calibration) { c.Uniform = []float64{0, 1} },
		"nonconformity":                      func(c *Calibration) { c.Nonconformity = []float64{math.NaN(), 1} },
	} {
		broken := *c
		edit(&broken)
		_, err = broken.InDistribution([]float64{0}, 0.5)
		refused(t, name, err, name)
	}
}
