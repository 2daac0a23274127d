package evaluate

import (
	"fmt"
	"math"
	"strings"

	"github.com/pkg/errors"
)

// SelfTest is the result of testing a run with images that cannot belong to its classes: how many
// of each kind it accepts as in distribution at Level.
type SelfTest struct {
	Kinds []StrangeImages `json:"kinds"`
}

// StrangeImages is one kind of images of a SelfTest.
type StrangeImages struct {
	Kind     string `json:"kind"` // plural, as in "solid colours"
	Images   int    `json:"images"`
	Accepted int    `json:"accepted"`
}

// minRejected is the fraction of strange images that a run must reject to pass its test.
const minRejected = 0.75

// Images returns the number of images of all kinds.
func (t *SelfTest) Images() (n int) {
	for _, k := range t.Kinds {
		n += k.Images
	}
	return n
}

// Rejected returns the fraction of images that are not accepted.
func (t *SelfTest) Rejected() float64 {
	accepted := 0
	for _, k := range t.Kinds {
		accepted += k.Accepted
	}
	return 1 - float64(accepted)/float64(t.Images())
}

// Passed reports whether at least three quarters of the images are rejected. Otherwise decisions
// about what is in distribution are unreliable. It is false for nil.
func (t *SelfTest) Passed() bool { return t != nil && t.Rejected() >= minRejected }

// String returns the result in words, with the kinds that are accepted more than half of the time:
// "rejects 97 % of 600 strange images". It is 100 % only if none is accepted.
func (t *SelfTest) String() string {
	percent := math.Round(100 * t.Rejected())
	if t.Rejected() < 1 {
		percent = min(percent, 99)
	}
	text := fmt.Sprintf("rejects %.0f %% of %d strange images", percent, t.Images())
	if !t.Passed() {
		text = "cannot tell strange images from its own: " + text
	}
	var accepted []string
	for _, k := range t.Kinds {
		if 2*k.Accepted > k.Images {
			accepted = append(accepted, k.Kind)
		}
	}
	if accepted != nil {
		text += "; accepts most " + strings.Join(accepted, ", ")
	}
	return text
}

// check returns an error for impossible numbers.
func (t *SelfTest) check(what string) error {
	if t == nil {
		return nil
	}
	for _, k := range t.Kinds {
		if k.Images < 1 || k.Accepted < 0 || k.Accepted > k.Images {
			return errors.Errorf("evaluate: %s: self-test: of %s, the accepted images must be from 0 to %[4]d, which is at least 1, got %[3]d",
				what, k.Kind, k.Accepted, k.Images)
		}
	}
	if len(t.Kinds) == 0 {
		return errors.Errorf("evaluate: %s: self-test: must have at least one kind of images", what)
	}
	return nil
}
