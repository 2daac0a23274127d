package emulator

import (
	"testing"
)

func TestBuild(t *testing.T) {
	d := Open(t, Options{})
	t.Log(d.Path)
}
