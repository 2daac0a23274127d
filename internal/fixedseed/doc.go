// Package fixedseed makes property tests (pgregory.net/rapid) draw the same cases on every run and
// leave no failure files. A test imports it for this side effect. -rapid.seed on the command line
// still takes precedence.
package fixedseed

import (
	"flag"

	_ "pgregory.net/rapid" // declares the flags
)

func init() {
	for name, value := range map[string]string{"rapid.seed": "1", "rapid.nofailfile": "true"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
}
