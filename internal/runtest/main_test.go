package runtest

import (
	"os"
	"testing"

	"github.com/pollen-ml/pollen/internal/testenv"
)

func TestMain(m *testing.M) {
	testenv.InMemory()
	os.Exit(m.Run())
}
