package stock

import (
	"flag"
	"os"
	"testing"
)

// Property tests draw the same cases on every run and leave no files; -rapid.seed on the command
// line draws others.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{"rapid.seed": "1", "rapid.nofailfile": "true", "rapid.checks": "520"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	flag.Parse()
	os.Exit(m.Run())
}
