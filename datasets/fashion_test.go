package datasets

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFashionMNIST(t *testing.T) {
	options := isolated(t)
	options.Dir = developmentData
	for _, split := range []Split{Train, Test} {
		if fashionMNIST().whereabouts(split, options) == "" {
			t.Skipf("no Fashion-MNIST in %s or %s", developmentData, debianFashionMNIST)
		}
		d, err := Load("fashion-mnist", split, options)
		if err != nil {
			t.Fatal(err)
		}
		each := []int{6000, 1000}[split]
		want := []int{each, each, each, each, each, each, each, each, each, each}
		if diff := cmp.Diff(want, d.Counts()); diff != "" {
			t.Errorf("%v: counts: %s", split, diff)
		}
		if split == Train {
			wantMoments(t, d)
		}
	}
}
