package config

import (
	"strings"
	"testing"
)

func TestListing(t *testing.T) {
	if got, want := Listing("Models", "a", "b"), "\nModels:    a, b"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	long := Listing("Models", strings.Repeat("a", 60), strings.Repeat("b", 60))
	if want := "\nModels:    " + strings.Repeat("a", 60) + ",\n" + strings.Repeat(" ", 11) + strings.Repeat("b", 60); long != want {
		t.Errorf("%q, want %q", long, want)
	}
}
