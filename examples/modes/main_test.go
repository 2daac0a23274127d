package main

import (
	"math"
	"testing"

	"github.com/pollen-ml/pollen/internal/testenv"
	"github.com/pollen-ml/pollen/langevin"
)

// TestLattice: the derivative matches the potential, which is lowest at the modes, and higher by
// 1/(2 variance) - ln 2 between two of them.
func TestLattice(t *testing.T) {
	for _, x := range []float64{-9, -4.1, -3, -1.02, 0, 0.9, 1, 3.7, 7} {
		const d = 1e-5
		up, _ := coordinate(x + d)
		down, _ := coordinate(x - d)
		if _, slope := coordinate(x); !(math.Abs(slope-(up-down)/(2*d)) < 1e-5*(1+math.Abs(slope))) {
			t.Errorf("slope at %v is %v, want %v", x, slope, (up-down)/(2*d))
		}
	}
	low, slope := coordinate(-2)
	high, _ := coordinate(-1)
	if math.Abs(slope) > 1e-9 || math.Abs(high-low-1/(2*variance)+math.Ln2) > 1e-9 {
		t.Errorf("at a mode the slope is %v, and the barrier %v, want 0 and %v", slope, high-low, 1/(2*variance)-math.Ln2)
	}
	for mode := range 25 {
		if got := modeOf(means[mode%5]+0.9, means[mode/5]-0.9); got != mode {
			t.Errorf("modeOf near mode %d = %d", mode, got)
		}
	}
}

// TestModes: the samplers find the modes, the proportions and the variance that the comment of the
// program states.
func TestModes(t *testing.T) {
	testenv.NeedsAll(t, "long chains")
	for _, m := range methods() {
		kept, err := m.sample()
		if err != nil {
			t.Fatal(err)
		}
		found, variation := kept.census()
		crossed, inside := kept.crossed(), kept.spread()/variance
		switch m.name {
		case small:
			if found != 1 || crossed != 0 {
				t.Errorf("%s: %d modes, and %v of the chains crossed, want the one where all began", m.name, found, crossed)
			}
		case large:
			if inside < 3 {
				t.Errorf("%s: %v times the variance within a mode, want several", m.name, inside)
			}
		case short:
			if found < 20 || variation < 0.2 {
				t.Errorf("%s: %d modes, total variation %v, want most modes, not evenly", m.name, found, variation)
			}
		default:
			if found != 25 || variation > 0.1 || math.Abs(inside-1) > 0.12 {
				t.Errorf("%s: %d modes, total variation %v, %v times the variance within a mode, want 25, below 0.1, and about 1", m.name, found, variation, inside)
			}
			if crosses := m.name != spread; crosses != (crossed > 0.95) {
				t.Errorf("%s: %v of the chains crossed", m.name, crossed)
			}
		}
	}
}

// TestGaussian: the variances, with SGLD's bias h k/2 where it applies; preconditioning makes the
// slow direction faster.
func TestGaussian(t *testing.T) {
	var effective []float64
	for i, m := range gaussianMethods() {
		kept, err := m.sample()
		if err != nil {
			t.Fatal(err)
		}
		xx, yy, xy, n, err := kept.estimates(m.plan)
		if err != nil {
			t.Fatal(err)
		}
		effective = append(effective, n)
		bias := []float64{1.0667, 1.0667, 1.07, 1}[i]
		if math.Abs(xx/0.16/bias-1) > 0.03 || math.Abs(yy-1) > 0.1 || math.Abs(xy) > 0.03 {
			t.Errorf("%s: E[x^2] = %v, E[y^2] = %v, E[xy] = %v", m.name, xx, yy, xy)
		}
		if _, ok := m.sampler.(langevin.PSGLD); ok && effective[1] < 1.5*effective[0] {
			t.Errorf("pSGLD has %v effective draws, SGLD %v, want more", effective[1], effective[0])
		}
	}
}
