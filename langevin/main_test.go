package langevin

import (
	"flag"
	"os"
	"testing"
)

// Property tests draw the same cases on every run and leave no files; -rapid.seed on the command
// line still wins.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{"rapid.seed": "1", "rapid.nofailfile": "true"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
