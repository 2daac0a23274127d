package rundir

import (
	"strings"
	"testing"

	"github.com/pkg/errors"
)

// The error of a damaged file names the file once, however often it is passed on.
func TestDamagedNamesTheFileOnce(t *testing.T) {
	cause := damaged("run/index.jsonl", errors.New("there is no such file"))
	for path, want := range map[string]string{
		"run/index.jsonl": "pollen: run/index.jsonl: there is no such file",
		"run":             "pollen: run: pollen: run/index.jsonl: there is no such file",
	} {
		if got := damaged(path, cause).Error(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	_, err := ReadIndex(t.TempDir())
	if again := damaged(errors.Cause(err).(*DamagedError).File, err); strings.Count(again.Error(), "pollen: ") != 1 {
		t.Error(again)
	}
}
