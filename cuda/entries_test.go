package cuda_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/pollen-ml/pollen/cuda/cudatest"
	"github.com/pollen-ml/pollen/cuda/emulator"
)

// notRun maps the entries of the committed PTX that these tests may leave out to the reasons.
var notRun = map[string]string{}

// TestMain runs the tests. On the committed PTX they fail together if one of its entries was not
// run, unless only some tests were asked for.
func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 && os.Getenv(cudatest.Variable) == cudatest.PTX && os.Getenv(emulator.LibraryVariable) == "" {
		code = checkEntries()
	}
	os.Exit(code)
}

// checkEntries reports entries that no test has run, and returns the exit status.
func checkEntries() int {
	for _, name := range []string{"test.run", "test.skip", "test.list"} {
		if flag.Lookup(name).Value.String() != "" {
			fmt.Println("only some tests were asked for: which entries of the PTX they run is not looked at")
			return 0
		}
	}
	names, err := emulator.NotRun()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	code := 0
	left := map[string]bool{}
	for _, name := range names {
		left[name] = true
		if notRun[name] == "" {
			fmt.Printf("no test runs the entry %s of the PTX, and no reason is given\n", name)
			code = 1
		}
	}
	for name := range notRun {
		if !left[name] {
			fmt.Printf("the entry %s of the PTX is run, or is not there: it needs no reason\n", name)
			code = 1
		}
	}
	return code
}
