package serve

import (
	"runtime"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/internal/memory"
)

// The limits of a server together take at most half of the available memory, or the minimum with
// which a server can work.
func TestWithinMemory(t *testing.T) {
	workers := 2 * runtime.GOMAXPROCS(0)
	for available, reduced := range map[int64]bool{
		0: true, 30 << 20: true, 200 << 20: true, 1 << 30: true, 1 << 40: false, memory.Unknown: false,
	} {
		reports := ""
		o, err := Options{Report: func(err error) { reports += err.Error() }}.resolve()
		if err != nil {
			t.Fatal(err)
		}
		got, d := o.withinMemory(memory.Limit{Bytes: available, Reason: "a test"})
		if !reduced {
			if got.Memory != o.Memory || got.MaxBody != o.MaxBody || d.workers != workers || d.large != 36*25_000_000 || reports != "" {
				t.Errorf("%d bytes: %+v, %+v, reported %q", available, got, d, reports)
			}
			continue
		}
		most := max(int(available/2), 3*smallMemory)
		if all := got.Memory + d.workers*smallMemory + d.large; all > most || d.workers < 1 || got.MaxBody > got.Memory || got.Memory < 1 {
			t.Errorf("%d bytes: %d in all, %+v, %+v", available, all, got, d)
		}
		if !strings.Contains(reports, "are available (a test)") {
			t.Errorf("%d bytes: reported %q", available, reports)
		}
	}
	// What is asked for and fits is kept.
	o, err := Options{Memory: 8 << 20, MaxBody: 1 << 20, MaxPixels: 1000, Report: func(err error) { t.Error(err) }}.resolve()
	if err != nil {
		t.Fatal(err)
	}
	if got, d := o.withinMemory(memory.Limit{Bytes: 1 << 34}); got.Memory != 8<<20 || d.large != treesPerPixel*1000+treesBase {
		t.Errorf("small limits became %+v, %+v", got, d)
	}
}
