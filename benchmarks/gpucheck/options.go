package main

import (
	"slices"
	"strings"
	"time"
)

// options are a call's options.
type options struct {
	call     string
	seconds  int
	only     string // names of checks, separated by commas
	python   string
	emulated bool
}

func (o options) limit() time.Duration { return time.Duration(o.seconds) * time.Second }

// wants reports whether a check is selected.
func (o options) wants(check string) bool {
	return slices.ContainsFunc(strings.Split(o.only, ","), func(name string) bool { return strings.HasPrefix(check, name) })
}
