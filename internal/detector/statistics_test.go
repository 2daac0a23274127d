package detector

import (
	"math"
	"testing"
)

// TestStatisticsWorkedByHand: an image of 2x4 with two channels, halved once.
func TestStatisticsWorkedByHand(t *testing.T) {
	pixels := []byte{
		0, 255, 0, 255,
		0, 255, 0, 255,

		255, 255, 255, 255,
		255, 255, 255, 255,
	}
	log := func(v float64) float64 { return math.Log(v + 1.0/255) }
	want := []float64{
		0.5, log(0.5), log(1), log(0), // columns of black and white; a halving has one row
		1, log(0), log(0), log(0), // white
		0.5, log(0.5), // the difference
	}
	got := statistics(nil, make([]int32, 8), pixels, 2, 2, 4)
	if len(got) != len(want) {
		t.Fatalf("got %d statistics, want %d", len(got), len(want))
	}
	for i, v := range want {
		if math.Abs(float64(got[i])-v) > 1e-6 {
			t.Errorf("statistic %d is %v, want %v", i, got[i], v)
		}
	}
}

// TestStatisticsOfOctaves: wide stripes have their power in a lower octave than narrow ones.
func TestStatisticsOfOctaves(t *testing.T) {
	stripes := func(width int) []float32 {
		pixels := make([]byte, 16*16)
		for i := range pixels {
			pixels[i] = byte(255 * (i % 16 / width % 2))
		}
		return statistics(nil, make([]int32, 256), pixels, 1, 16, 16)
	}
	narrow, wide := stripes(1), stripes(4)
	if len(narrow) != 2+2*maxOctaves {
		t.Fatalf("got %d statistics, want %d", len(narrow), 2+2*maxOctaves)
	}
	const first, third = 2, 2 + 2*2 // horizontal differences
	if !(narrow[first] > wide[first] && narrow[third] < wide[third]) {
		t.Errorf("narrow %v, wide %v", narrow, wide)
	}
	if tiny := statistics(nil, make([]int32, 1), []byte{7}, 1, 1, 1); len(tiny) != 2 {
		t.Errorf("an image of one pixel has statistics %v", tiny)
	}
}
