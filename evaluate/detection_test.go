package evaluate

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// pairwise counts pairs, O(n^2).
func pairwise(in, out []float64) float64 {
	above := 0.0
	for _, i := range in {
		for _, o := range out {
			switch {
			case o > i:
				above++
			case o == i:
				above += 0.5
			}
		}
	}
	return above / float64(len(in)) / float64(len(out))
}

// rates returns the true and false positive counts of the rule "score >= threshold".
func rates(negative, positive []float64, threshold float64) (truePositives, falsePositives int) {
	for _, s := range positive {
		if s >= threshold {
			truePositives++
		}
	}
	for _, s := range negative {
		if s >= threshold {
			falsePositives++
		}
	}
	return truePositives, falsePositives
}

// naivePrecision sums precision over the steps of recall at every distinct threshold, O(n^2).
func naivePrecision(negative, positive []float64) float64 {
	thresholds := slices.Concat(negative, positive)
	slices.Sort(thresholds)
	thresholds = slices.Compact(thresholds)
	slices.Reverse(thresholds)
	sum, recall := 0.0, 0.0
	for _, threshold := range thresholds {
		truePositives, falsePositives := rates(negative, positive, threshold)
		next := float64(truePositives) / float64(len(positive))
		sum += (next - recall) * float64(truePositives) / float64(truePositives+falsePositives)
		recall = next
	}
	return sum
}

// naiveFPR95 takes the least false positive rate of all thresholds that reach 95 % recall, O(n^2).
func naiveFPR95(in, out []float64) float64 {
	least := 1.0
	for _, threshold := range out {
		truePositives, falsePositives := rates(in, out, threshold)
		if float64(truePositives)/float64(len(out)) >= 0.95 {
			least = math.Min(least, float64(falsePositives)/float64(len(in)))
		}
	}
	return least
}

func negated(scores []float64) []float64 {
	n := make([]float64, len(scores))
	for i, s := range scores {
		n[i] = -s
	}
	return n
}

// scoresGenerator draws few distinct values, so that most scores tie, or many, infinities among
// them.
func scoresGenerator() *rapid.Generator[[]float64] {
	few := rapid.Map(rapid.IntRange(-3, 3), func(i int) float64 { return float64(i) / 2 })
	many := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1)}))
	return rapid.OneOf(rapid.SliceOfN(few, 1, 60), rapid.SliceOfN(many, 1, 60))
}

func TestDetectAgainstDefinitions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in, out := scoresGenerator().Draw(t, "in"), scoresGenerator().Draw(t, "out")
		inBefore, outBefore := slices.Clone(in), slices.Clone(out)
		d, err := Detect(in, out)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			name      string
			got, want float64
		}{
			{"AUROC", d.AUROC, pairwise(in, out)},
			{"AUPR-out", d.AUPROut, naivePrecision(in, out)},
			{"AUPR-in", d.AUPRIn, naivePrecision(negated(out), negated(in))},
			{"FPR95", d.FPR95, naiveFPR95(in, out)},
		} {
			if !(math.Abs(c.got-c.want) <= 1e-12) {
				t.Fatalf("%s: got %v, want %v", c.name, c.got, c.want)
			}
		}
		if !slices.Equal(in, inBefore) || !slices.Equal(out, outBefore) {
			t.Fatal("Detect changed its input")
		}
		swapped, err := Detect(out, in)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(swapped.AUROC+d.AUROC-1) > 1e-12 {
			t.Fatalf("AUROC %v and %v with the sides swapped do not sum to 1", d.AUROC, swapped.AUROC)
		}
	})
}

// An increasing map of the scores changes nothing, to the bit.
func TestDetectUsesRanksOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		side := rapid.SliceOfN(rapid.IntRange(-40, 40), 1, 60)
		in, out := side.Draw(t, "in"), side.Draw(t, "out")
		detect := func(of func(int) float64) Detection {
			var a, b []float64
			for _, i := range in {
				a = append(a, of(i))
			}
			for _, o := range out {
				b = append(b, of(o))
			}
			d, err := Detect(a, b)
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		plain := detect(func(i int) float64 { return float64(i) })
		mapped := detect(func(i int) float64 { return float64(i*i*i) - 5 })
		if plain != mapped {
			t.Fatalf("got %v, want %v", mapped, plain)
		}
	})
}

func TestDetectWorkedByHand(t *testing.T) {
	upTo := func(n int) []float64 {
		s := make([]float64, n)
		for i := range s {
			s[i] = float64(i + 1)
		}
		return s
	}
	for _, c := range []struct {
		name    string
		in, out []float64
		want    Detection
	}{
		{"apart", []float64{1, 2}, []float64{3, 4}, Detection{1, 1, 1, 0, 0}},
		{"reversed", []float64{3, 4}, []float64{1, 2}, Detection{0, (1.0/3 + 2.0/4) / 2, (1.0/3 + 2.0/4) / 2, 1, 1}},
		{"all tied", []float64{7, 7, 7}, []float64{7}, Detection{0.5, 0.25, 0.75, 1, 1}},
		// Descending: 3 out, then 2 (one of each), then 1 in.
		{"one tie", []float64{1, 2}, []float64{2, 3}, Detection{3.5 / 4, (1 + 2.0/3) / 2, (1 + 2.0/3) / 2, 0.5, 0.5}},
		// 19 of 20 are exactly 95 %: the threshold is 2, the example at 1 may be missed.
		{"exactly 95 %", []float64{1.5, 2, 30}, upTo(20), Detection{37.5 / 60, -1, -1, 2.0 / 3, 1}},
		// 18 of 19 are 94.7 %: all must be found.
		{"finite n", []float64{1.5, 0, 30}, upTo(19), Detection{37.0 / 57, -1, -1, 2.0 / 3, 1}},
		// 19 of 20 in-distribution examples are accepted up to 19, the others' 18.5 with them.
		{"in exactly 95 %", upTo(20), []float64{18.5, 19.5}, Detection{37.0 / 40, -1, -1, 2.0 / 20, 0.5}},
	} {
		d, err := Detect(c.in, c.out)
		if err != nil {
			t.Fatal(err)
		}
		near(t, c.name+": AUROC", d.AUROC, c.want.AUROC, 1e-15)
		near(t, c.name+": FPR95", d.FPR95, c.want.FPR95, 1e-15)
		near(t, c.name+": FPR95 in", d.FPR95In, c.want.FPR95In, 1e-15)
		if c.want.AUPROut >= 0 {
			near(t, c.name+": AUPR-out", d.AUPROut, c.want.AUPROut, 1e-15)
			near(t, c.name+": AUPR-in", d.AUPRIn, c.want.AUPRIn, 1e-15)
		}
	}
}

func TestDetectRefuses(t *testing.T) {
	for _, c := range []struct {
		name    string
		in, out []float64
		message string
	}{
		{"no in", nil, []float64{1}, "in must have at least 1 score"},
		{"no out", []float64{1}, nil, "out must have at least 1 score"},
		{"NaN in", []float64{1, math.NaN()}, []float64{1}, "in: score 1 is NaN"},
		{"NaN out", []float64{1}, []float64{math.NaN()}, "out: score 0 is NaN"},
	} {
		if _, err := Detect(c.in, c.out); err == nil || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s: got error %v, want one containing %q", c.name, err, c.message)
		}
	}
}

// The area under the curve, by trapezoids, is the AUROC, ties and all.
func TestROCHasTheArea(t *testing.T) {
	for _, grid := range []float64{0, 4} {
		random := rand.New(rand.NewPCG(22, 1))
		c := Case{In: world(t, random, 70, 1, grid), Out: world(t, random, 41, 0.3, grid)}
		in, out, err := roc(c)
		if err != nil {
			t.Fatal(err)
		}
		area := 0.0
		for i := range in[1:] {
			area += (in[i+1] - in[i]) * (out[i+1] + out[i]) / 2
		}
		d, err := Detect(c.In.Entropy, c.Out.Entropy)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "area", area, d.AUROC, 1e-12)
		near(t, "right end", in[len(in)-1], 1, 0)
		near(t, "top", out[len(out)-1], 1, 0)
	}
}
