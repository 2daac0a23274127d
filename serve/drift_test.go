package serve

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
)

// TestDrift: metrics count predicted classes and decisions; labels are escaped, and few.
func TestDrift(t *testing.T) {
	in, out := true, false
	d := newDrift([]string{"rose", "a \"b\"\\c\nd", "rose"})
	d.add([]bayes.Answer{{Index: 0, InDistribution: &in}, {Index: 1, InDistribution: &out}, {Index: 1, InDistribution: &out}, {Index: 2}})
	var text strings.Builder
	write := func() {
		m := &model{name: "a \"model\"", version: "1", drift: d, queue: &queue{}}
		m.queue.served.Store(&served{info: runInfo{Samples: 7}})
		writeModels(&text, []*model{m})
	}
	write()
	var got []string
	for line := range strings.Lines(text.String()) {
		if !strings.HasPrefix(line, "#") {
			got = append(got, line)
		}
	}
	const of = `{model="a \"model\"",version="1"`
	want := "pollen_samples" + of + "} 7\npollen_predictions_total" + of + ",class=\"rose\"} 2\npollen_predictions_total" + of +
		",class=\"a \\\"b\\\"\\\\c\\nd\"} 2\n" +
		"pollen_distribution_total" + of + ",decision=\"in\"} 1\npollen_distribution_total" + of + ",decision=\"out\"} 2\n"
	if strings.Join(got, "") != want {
		t.Errorf("got\n%s, want\n%s", strings.Join(got, ""), want)
	}

	var names []string
	for i := range 5000 {
		names = append(names, strings.Repeat("é", 100)+fmt.Sprint(i))
	}
	d = newDrift(names)
	for i := range names {
		d.add([]bayes.Answer{{Index: i}})
	}
	text.Reset()
	write()
	if lines := strings.Count(text.String(), "pollen_predictions_total{"); lines != maxClassLabels+1 || text.Len() > 40_000 ||
		!strings.Contains(text.String(), `class="other"} 4900`) || strings.Contains(text.String(), "} 0") && !strings.Contains(text.String(), `"in"} 0`) {
		t.Errorf("5000 classes have %d lines, %d bytes:\n%.3000s", lines, text.Len(), text.String())
	}
}

// A server's metrics count its answers.
func TestDriftOfAnswers(t *testing.T) {
	s := newTest(t, Options{})
	for i := range 6 {
		post(s, "/predict", "", strings.NewReader(string(pngOf(theTest.Image(i)))))
	}
	post(s, "/predict", "", strings.NewReader("no image"))
	_, _, body := get(s, "/metrics")
	sum := func(name string) (total int) {
		for line := range strings.Lines(body) {
			if rest, is := strings.CutPrefix(line, name+"{"); is {
				var n int
				_, err := fmt.Sscan(rest[strings.Index(rest, "} ")+2:], &n)
				check(err)
				total += n
			}
		}
		return total
	}
	if p, d := sum("pollen_predictions_total"), sum("pollen_distribution_total"); p != 6 || d != 6 || !strings.Contains(body, `class="checked"} `) {
		t.Errorf("%d predictions and %d decisions for 6 images:\n%s", p, d, body)
	}
}
