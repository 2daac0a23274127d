package main

import (
	"context"
	"math"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// lateRates are nearly 0 for three quarters of a run.
type lateRates struct{}

func (lateRates) Validate() error { return nil }
func (lateRates) String() string  { return "late" }
func (lateRates) Rates(steps int) ([]float64, error) {
	rates := make([]float64, steps)
	for i := range rates {
		if rates[i] = 1e-9; i >= 3*steps/4 {
			rates[i] = 0.01
		}
	}
	return rates, nil
}

// Samples count by their learning rates: where only the last one's is not nearly 0, the average is that sample's predictions.
func TestSamplesAreWeighted(t *testing.T) {
	s := &study{ctx: context.Background(), effort: 0.02, device: tensor.NewHost(0)}
	defer s.device.Close()
	if err := s.load("glyphs"); err != nil {
		t.Fatal(err)
	}
	got, err := sampled(langevin.SGLD{}, lateRates{}, 0)(s)
	if err != nil {
		t.Fatal(err)
	}
	network, err := layers.New(model, classes)
	if err != nil {
		t.Fatal(err)
	}
	last, err := s.predictions(network)
	if err != nil {
		t.Fatal(err)
	}
	defer last.predictor.Close()
	n := s.scaled(steps)
	rates, _ := lateRates{}.Rates(n)
	plan := langevin.Plan{Steps: n, Thinning: n}
	temperatures, err := plan.Temperatures(langevin.SGLD{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	taken := 0
	err = s.sample(network, langevin.SGLD{}, plan, chainsOfEach, rates, temperatures, func(session *graph.Session, chain int) error {
		sample, err := samples.Take(session, chain, 1)
		if err != nil {
			return err
		}
		taken++
		return last.add(sample)
	})
	if err != nil || taken != chainsOfEach {
		t.Fatalf("%d samples (%v)", taken, err)
	}
	for i, want := range last.mean.Mean() {
		if math.Abs(got[i]-want) > 1e-4 {
			t.Fatalf("probability %d is %v, want the last samples' %v", i, got[i], want)
		}
	}
}
