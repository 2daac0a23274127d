//go:build !unix

package main

import "os/exec"

// endAll leaves a command as it is: what is packed runs on Linux.
func endAll(*exec.Cmd) {}
