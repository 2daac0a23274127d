//go:build !unix

package main

import (
	"os"
	"time"

	"github.com/pkg/errors"
)

// pause is not supported here.
func pause(*os.Process) error { return errors.New("processes cannot be paused on this system") }

// processorSeconds returns how long this process has run; its processor time is unknown here.
func processorSeconds() float64 { return time.Since(began).Seconds() }

var began = time.Now()

// peak is unknown here.
func peak(*os.ProcessState) int64 { return 0 }
