package datasets

import (
	"slices"
	"testing"
)

func TestClassCountsRemarks(t *testing.T) {
	names := []string{"a", "b", "c"}
	for _, test := range []struct {
		counts [3][]int
		want   []string
	}{
		{[3][]int{Train: {10, 100, 50}, Test: {1, 2, 3}}, nil},
		{[3][]int{Test: {0, 2, 3}}, nil},
		{[3][]int{Train: {9, 20, 0}}, []string{"2 of 3 classes have fewer than 10 training images, too few to learn from: a (9), c"}},
		{[3][]int{Train: {10, 101, 50}, Test: {0, 2, 3}, Validation: {1, 0, 0}}, []string{
			"1 of 3 classes have no test images: a; scores are of the others only",
			"2 of 3 classes have no validation images: b, c; the calibration is for the others only",
			"classes are imbalanced: b has 101 training images, a has 10; look at the balanced accuracy",
		}},
	} {
		if got := (ClassCounts{names, test.counts}).Remarks(); !slices.Equal(got, test.want) {
			t.Errorf("%v: remarks %q, want %q", test.counts, got, test.want)
		}
	}
}

func TestClassCounts(t *testing.T) {
	splits := splitsOf(t, [3][]int{Train: {10, 20, 31}, Test: {42}})
	got := splits.ClassCounts()
	if !slices.Equal(got.Counts[Train], []int{2, 1, 0}) || !slices.Equal(got.Counts[Test], []int{0, 0, 1}) || got.Counts[Validation] != nil {
		t.Errorf("counts %v", got.Counts)
	}
	if splits.Test.Labels = nil; splits.ClassCounts().Counts[Test] != nil {
		t.Error("images without labels are counted")
	}
}
