package main

import (
	"slices"
	"strings"

	"github.com/pkg/errors"
)

// options are the flags that all commands share.
type options struct {
	rounds  int
	threads int
	json    string
	python  string
	quiet   bool
	model   string // the GPU whose model predicts
}

// known returns an error if a flag has a value that is none of all.
func known(flag string, values []string, all ...string) error {
	for _, v := range values {
		if !slices.Contains(all, v) {
			return errors.Errorf("benchmarks: --%s must be one of %s, got %q", flag, strings.Join(all, ", "), v)
		}
	}
	return nil
}

// positive returns an error if a flag has a value below 1.
func positive(flag string, values ...int) error {
	for _, v := range values {
		if v < 1 {
			return errors.Errorf("benchmarks: --%s must be at least 1, got %d", flag, v)
		}
	}
	return nil
}
