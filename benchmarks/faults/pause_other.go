//go:build !unix

package main

import (
	"os"

	"github.com/pkg/errors"
)

// pause cannot be done here.
func pause(*os.Process) error { return errors.New("no process can be paused on this system") }

// peak is not known here.
func peak(*os.ProcessState) int64 { return 0 }
