package runtest

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
)

// A process that recovers from a panic of its observer, as servers do, can resume the run.
func TestPanickingObserver(t *testing.T) {
	data, spec := trainOn(squares(t, 100, 4, 1)), quick()
	dir := filepath.Join(t.TempDir(), "run")
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the observer did not panic")
			}
		}()
		bayes.Fit(context.Background(), spec, data, dir, bayes.WithObserver(func(e bayes.Event) {
			if e.Done > 0 {
				panic("observer")
			}
		}))
	}()
	_, err := bayes.Resume(context.Background(), dir, data)
	must(t, err)
	same(t, "resumed", contents(t, fit(t, spec, data).Dir()), contents(t, dir))
}
