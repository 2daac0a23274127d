package main

import (
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
	if o.only == "" {
		return true
	}
	for _, name := range strings.Split(o.only, ",") {
		if strings.HasPrefix(check, name) {
			return true
		}
	}
	return false
}
