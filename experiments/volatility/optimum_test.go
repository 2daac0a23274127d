package main

import (
	"math"
	"testing"

	"github.com/pollen-ml/pollen/tensor/random"
)

// The bound is the mean over draws of q of ln p - ln q.
func TestBound(t *testing.T) {
	const draws = 4000
	s := made(31)
	q := start(s.returns)
	for i := range q.steps {
		q.steps[i].variance = 0.01 * float64(1+i%3)
	}
	q.logFreedom.variance = 0.09
	z := make([]float64, len(q.steps)+2)
	walk := make([]float64, len(q.steps))
	mean, square := 0.0, 0.0
	for draw := range draws {
		random.Normals(z, 0, random.Address{Seed: 1, Chain: uint32(draw)})
		logDensity := 0.0
		of := func(f normalFactor, z float64) float64 {
			logDensity -= (z*z + math.Log(2*math.Pi*f.variance)) / 2
			return f.mean + math.Sqrt(f.variance)*z
		}
		logStd, logFreedom := of(q.logStd, z[0]), of(q.logFreedom, z[1])
		at := 0.0
		for i, step := range q.steps {
			at += of(step, z[i+2])
			walk[i] = at
		}
		joint := -naivePotential(s.returns, logStd, logFreedom, walk) - float64(len(walk))*logStd
		mean += (joint - logDensity) / draws
		square += (joint - logDensity) * (joint - logDensity) / draws
	}
	std := math.Sqrt((square - mean*mean) / draws)
	if got := q.bound(s.returns); !(math.Abs(got-mean) < 4*std) || std > 0.2 {
		t.Errorf("the bound is %v, want %v +- %v", got, mean, std)
	}
}

// No change of a factor raises the highest bound.
func TestOptimum(t *testing.T) {
	s := made(40)
	best, highest := optimum(s.returns)
	if got := best.bound(s.returns); got != highest {
		t.Errorf("the best q has the bound %v, want %v", got, highest)
	}
	for name, f := range map[string]*normalFactor{
		"log deviation": &best.logStd, "log freedom": &best.logFreedom, "first step": &best.steps[0], "step": &best.steps[17],
	} {
		was := *f
		for _, factor := range []float64{-0.1, 0.1} {
			f.mean += factor * math.Sqrt(f.variance)
			if got := best.bound(s.returns); got > highest {
				t.Errorf("%s: another mean raises the bound to %v from %v", name, got, highest)
			}
			*f = was
			f.variance *= math.Exp(factor)
			if got := best.bound(s.returns); got > highest {
				t.Errorf("%s: another variance raises the bound to %v from %v", name, got, highest)
			}
			*f = was
		}
	}
}
