package evaluate

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// bands are classifiers whose confidences are uniform in [0, 1] and whose errors have a probability
// in each of some bands of equal width, from the lowest confidence.
var bands = []struct {
	name     string
	mistakes []float64
	useful   bool // images can be answered
}{
	{"just above the risk", []float64{0.1001}, false},
	{"falling", []float64{0.9, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0, 0}, true},
	{"confidently wrong", append(append([]float64{0.9, 0.9, 0.4, 0.4, 0.2, 0.2, 0.1, 0.1}, slices.Repeat([]float64{0.02}, 11)...), 0.25), true},
	{"wrong in the middle", []float64{0, 0, 0, 0, 0, 0.6, 0.6, 0, 0, 0}, true},
	{"always right", []float64{0}, true},
}

func draw(random *rand.Rand, mistakes []float64, n int) (confidences []float64, wrong []bool) {
	for range n {
		s := random.Float64()
		confidences = append(confidences, s)
		wrong = append(wrong, random.Float64() < mistakes[int(s*float64(len(mistakes)))])
	}
	return confidences, wrong
}

// selectiveRisk is the probability of an error given a confidence of at least t.
func selectiveRisk(mistakes []float64, t float64) float64 {
	width, sum := 1/float64(len(mistakes)), 0.0
	for i, p := range mistakes {
		sum += p * max(0, float64(i+1)*width-max(t, float64(i)*width))
	}
	return sum / (1 - t)
}

// empirical takes the error rate for the risk.
func empirical(m, wrong int, risk float64) float64 {
	if m > 0 && float64(wrong) <= risk*float64(m) {
		return 0
	}
	return 1
}

// Over 1000 sets of held-out images, the selective risk at the certified threshold is above the
// risk at most as often as promised, up to three standard errors; with the error rate of the
// held-out images instead of a p-value it is much more often.
func TestCertifiedRiskHolds(t *testing.T) {
	const repetitions, some, risk, delta = 1000, 100, 0.1, 0.1
	for _, w := range bands {
		for _, n := range []int{60, 400} {
			violations, byRate, answered, exact, bounded := 0, 0, 0.0, 0.0, 0.0
			for seed := range uint64(repetitions) {
				confidences, wrong := draw(rand.New(rand.NewPCG(31, seed)), w.mistakes, n)
				c := certify(confidences, wrong, risk, 1-delta, riskPValue)
				if c.Certified && selectiveRisk(w.mistakes, c.Threshold) > risk {
					violations++
				}
				answered += float64(c.Answered) / float64(n) / repetitions
				if seed < some {
					exact += float64(c.Answered) / float64(n) / some
					bounded += float64(certify(confidences, wrong, risk, 1-delta, hoeffdingBentkus).Answered) / float64(n) / some
				}
				if c = certify(confidences, wrong, risk, 1-delta, empirical); c.Certified && selectiveRisk(w.mistakes, c.Threshold) > risk {
					byRate++
				}
			}
			t.Logf("%s, %d images: %d violations, %d without a p-value; %.3f answered; of the first %.3f, %.3f by Hoeffding-Bentkus",
				w.name, n, violations, byRate, answered, exact, bounded)
			if limit := repetitions*delta + 3*math.Sqrt(repetitions*delta*(1-delta)); float64(violations) > limit {
				t.Errorf("%s, %d images: the risk is above %v in %d of %d repetitions, want at most %.0f", w.name, n, risk, violations, repetitions, limit)
			}
			if w.name != "always right" && float64(byRate) < 2*repetitions*delta {
				t.Errorf("%s, %d images: %d violations by the error rate: the test detects nothing", w.name, n, byRate)
			}
			if n == 400 && w.useful && answered < 0.2 {
				t.Errorf("%s: %.3f of the images are answered, want at least .2", w.name, answered)
			}
			if bounded > exact {
				t.Errorf("%s, %d images: Hoeffding-Bentkus answers %.3f of the images, the exact p-value %.3f", w.name, n, bounded, exact)
			}
		}
	}
}

// hoeffdingBentkus is the p-value of Bates et al. 2021, theorem 3 and proposition 6, and of Learn
// then Test: min(exp(-m h(min(rate, risk), risk)), e P(Binomial(m, risk) <= ceil(m rate))).
func hoeffdingBentkus(m, wrong int, risk float64) float64 {
	if m == 0 {
		return 1
	}
	rate := min(float64(wrong)/float64(m), risk)
	h := (1 - rate) * math.Log((1-rate)/(1-risk))
	if rate > 0 {
		h += rate * math.Log(rate/risk)
	}
	return min(1, math.Exp(-float64(m)*h), math.E*riskPValue(m, wrong, risk))
}

// binomial is P(X <= wrong) for m trials, summed up.
func binomial(m, wrong int, risk float64) float64 {
	sum := 0.0
	for k := range wrong + 1 {
		whole, _ := math.Lgamma(float64(m) + 1)
		first, _ := math.Lgamma(float64(k) + 1)
		second, _ := math.Lgamma(float64(m-k) + 1)
		sum += math.Exp(whole - first - second + float64(k)*math.Log(risk) + float64(m-k)*math.Log1p(-risk))
	}
	return sum
}

// The exact p-value is the binomial tail, and never above Hoeffding and Bentkus' bound.
func TestRiskPValue(t *testing.T) {
	for _, m := range []int{0, 1, 7, 100, 1000} {
		for _, risk := range []float64{0.001, 0.02, 0.3} {
			for wrong := 0; wrong <= m; wrong += 1 + m/20 {
				got := riskPValue(m, wrong, risk)
				if want := binomial(m, wrong, risk); m > 0 && math.Abs(got-want) > 1e-9 {
					t.Errorf("riskPValue(%d, %d, %v) = %v, want %v", m, wrong, risk, got, want)
				}
				if bound := hoeffdingBentkus(m, wrong, risk); got > bound+1e-12 {
					t.Errorf("riskPValue(%d, %d, %v) = %v, above the bound %v", m, wrong, risk, got, bound)
				}
			}
		}
	}
}

// From Needed images on, all of them answered and right, everything can be certified.
func TestCertifyWorkedByHand(t *testing.T) {
	confident := func(n int) (confidences []float64, wrong []bool) {
		for range n {
			confidences, wrong = append(confidences, 1), append(wrong, false)
		}
		return confidences, wrong
	}
	for _, n := range []int{182, 183} { // .98^183 = .0248 <= .1/4 < .98^182
		confidences, wrong := confident(n)
		want := Certificate{Risk: 0.02, Confidence: 0.9, Images: n, Needed: 183}
		if n >= want.Needed {
			want.Certified, want.Answered = true, n
		}
		if c := certify(confidences, wrong, 0.02, 0.9, riskPValue); c != want {
			t.Errorf("%d images: %+v, want %+v", n, c, want)
		}
	}
	// Two mistakes of low confidence: the threshold is the confidence of the image before them.
	confidences, wrong := confident(250)
	confidences, wrong = append(confidences, 0.7, 0.55, 0.5), append(wrong, false, true, true)
	c := certify(confidences, wrong, 0.02, 0.9, riskPValue)
	if want := (Certificate{Risk: 0.02, Confidence: 0.9, Certified: true, Threshold: 0.55, Images: 253, Answered: 252, Wrong: 1, Needed: 183}); c != want {
		t.Errorf("got %+v, want %+v", c, want)
	}
	if c.Answers(0.54) || !c.Answers(0.55) || (Certificate{}).Answers(1) {
		t.Error("images are answered from the threshold on, and none without a certificate")
	}
}

func TestCertifyRefuses(t *testing.T) {
	c, err := Calibrate(predictionsOf(t, []float64{0.9, 0.1, 0.2, 0.8}, []int32{0, 1}, 2))
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []float64{0, 1, -1, math.NaN()} {
		_, err = c.Certify(bad, 0.9)
		refused(t, "risk", err, "must be between 0 and 1")
		_, err = c.Certify(0.1, bad)
		refused(t, "confidence", err, "must be between 0 and 1")
	}
	none, err := c.Certify(0.1, 0.9)
	if err != nil || none.Certified || none.Images != 2 || none.From() != "none: needs 36 images, has 2" ||
		none.String() != "no answers with at most 10 % errors can be certified: that needs at least 36 held-out images, and there are 2" {
		t.Errorf("%v, %v", none, err)
	}
	if none, err = c.Certify(1e-300, 0.9); err != nil || none.Needed != math.MaxInt32 {
		t.Errorf("of a risk of nearly 0: %v, %v", none, err)
	}
	p := predictionsOf(t, []float64{0.9, 0.1, 0.2, 0.8, 0.3, 0.7}, []int32{0, 1, 1}, 2)
	p.Groups = []string{"a", "b", "b"}
	if c, err = Calibrate(p); err != nil {
		t.Fatal(err)
	}
	none, err = c.Certify(0.1, 0.9)
	if err != nil || none.From() != "none: needs 36 groups, has 2" || none.Why() != "that needs held-out images of at least 36 groups, and there are 2 groups" {
		t.Errorf("groups: %v, %v", none, err)
	}
}
