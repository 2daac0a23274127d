//go:build !unix

package main

import (
	"os"
	"time"

	"github.com/pkg/errors"
)

// pause cannot be done here.
func pause(*os.Process) error { return errors.New("no process can be paused on this system") }

// processorSeconds is how long this process has run, where that is all that is known.
func processorSeconds() float64 { return time.Since(began).Seconds() }

var began = time.Now()

// peak is not known here.
func peak(*os.ProcessState) int64 { return 0 }
