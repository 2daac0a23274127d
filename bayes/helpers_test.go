package bayes

import (
	"strings"
	"testing"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/letters"
	"github.com/pollen-ml/pollen/tensor"
)

// side is the height and width of the images of squares.
const side = letters.Side

var squares = letters.Squares

// trainOn returns splits with only training data.
func trainOn(data *datasets.Dataset) *datasets.Splits { return &datasets.Splits{Train: data} }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// with returns a device of the given number of threads, which the test closes.
func with(t testing.TB, threads int) Option {
	host := tensor.NewHost(threads)
	t.Cleanup(func() { host.Close() })
	return WithDevice(host)
}

// methodOf returns the method that a text names.
func methodOf(t testing.TB, text string) Method {
	t.Helper()
	m, err := ParseMethod(text)
	must(t, err)
	return m
}

// wantError fails the test unless the error contains all these texts.
func wantError(t testing.TB, what string, err error, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: error %v, want one that says %q", what, err, text)
		}
	}
}

// wantInvalid is like wantError, for errors of the caller.
func wantInvalid(t testing.TB, what string, err error, texts ...string) {
	t.Helper()
	wantError(t, what, err, texts...)
	if !errors.As(err, new(*InvalidError)) {
		t.Errorf("%s: the error %v (%T) is not Invalid", what, err, err)
	}
}
