package evaluate

import (
	"math/rand/v2"
	"testing"
)

func TestSelfTest(t *testing.T) {
	for _, c := range []struct {
		test   *SelfTest
		passed bool
		text   string
	}{
		{&SelfTest{[]StrangeImages{{"noise", 60, 0}, {"letters", 40, 3}}}, true, "rejects 97 % of 100 strange images"},
		{&SelfTest{[]StrangeImages{{"noise", 560, 0}, {"letters", 40, 1}}}, true, "rejects 99 % of 600 strange images"},
		{&SelfTest{[]StrangeImages{{"noise", 560, 0}, {"letters", 40, 0}}}, true, "rejects 100 % of 600 strange images"},
		{&SelfTest{[]StrangeImages{{"noise", 60, 0}, {"letters", 20, 11}, {"ramps", 20, 10}}}, true,
			"rejects 79 % of 100 strange images; accepts most letters"},
		{&SelfTest{[]StrangeImages{{"noise", 60, 1}, {"letters", 40, 24}}}, true, "rejects 75 % of 100 strange images; accepts most letters"},
		{&SelfTest{[]StrangeImages{{"noise", 2, 2}, {"letters", 2, 2}}}, false,
			"cannot tell strange images from its own: rejects 0 % of 4 strange images; accepts most noise, letters"},
	} {
		if got := c.test.String(); got != c.text || c.test.Passed() != c.passed {
			t.Errorf("%+v: %q, passed %v", c.test, got, c.test.Passed())
		}
	}
	if (*SelfTest)(nil).Passed() {
		t.Error("a run that was not tested has passed")
	}
}

// TestPValue compares with the definition, for calibrations that keep all scores and for those that
// keep a thousand.
func TestPValue(t *testing.T) {
	random := rand.New(rand.NewPCG(31, 1))
	for _, n := range []int{1, 19, 1000, 2500} {
		p := world(t, random, n, 1, 10) // with ties
		c, err := Calibrate(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, score := range append([]float64{-1, 9}, p.Nonconformity...) {
			above := 0
			for _, v := range p.Nonconformity {
				if v >= score {
					above++
				}
			}
			exact, got := float64(1+above)/float64(n+1), c.PValue(score)
			if got != exact {
				t.Fatalf("%d examples: PValue(%v) = %v, want %v", n, score, got, exact)
			}
		}
	}
}
