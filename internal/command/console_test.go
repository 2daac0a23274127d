package command

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/internal/progress"
)

// testConsole returns a console without a terminal, whose clock the test sets.
func testConsole() (c *console, out, remarks *bytes.Buffer, clock *time.Time) {
	out, remarks, clock = &bytes.Buffer{}, &bytes.Buffer{}, &time.Time{}
	return &console{out: &progress.Results{To: out}, err: remarks, now: func() time.Time { return *clock }}, out, remarks, clock
}

// A task whose images are not counted, such as NUTS in llc, has no images per second.
func TestSpeed(t *testing.T) {
	for images, want := range map[int]string{0: "on mnist  in 2s", 10: "on mnist  5 images/s  in 2s"} {
		c, _, remarks, clock := testConsole()
		observe := c.observer("run")
		observe(bayes.Event{Task: "NUTS", On: "mnist", Total: 4})
		*clock = clock.Add(2 * time.Second)
		observe(bayes.Event{Task: "NUTS", On: "mnist", Done: 4, Total: 4, Images: images})
		if !strings.Contains(remarks.String(), want) {
			t.Errorf("%d images: %q, want %q", images, remarks, want)
		}
	}
}

// Events within a window of steps have no scores, and keep those of the window before.
func TestStatusWithinWindow(t *testing.T) {
	c, _, remarks, clock := testConsole()
	observe, nan := c.observer("sgld"), math.NaN()
	e := bayes.Event{Task: "fit", On: "mnist", Total: 400, Images: 100, Temperature: nan, RHat: nan, ValidationLoss: nan, ValidationNLL: nan}
	for _, step := range []struct {
		done int
		loss float64
	}{{0, nan}, {20, nan}, {100, 0.5}, {120, nan}} {
		*clock = clock.Add(10 * time.Second)
		e.Done, e.Loss = step.done, step.loss
		observe(e)
	}
	want := "sgld     5%  on mnist  10 images/s  eta 3m10s\n" +
		"sgld    25%  loss 0.5000  acc 0.0000  10 images/s  eta 1m0s\n" +
		"sgld    30%  loss 0.5000  acc 0.0000  10 images/s  eta 1m10s\n"
	if got := remarks.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The last line of a task has the speed of all its work, not only of the last window of steps.
func TestLastSpeed(t *testing.T) {
	c, _, remarks, clock := testConsole()
	observe := c.observer("run")
	for done, seconds := range []int{0, 10, 10, 1} {
		*clock = clock.Add(time.Duration(seconds) * time.Second)
		observe(bayes.Event{Task: "scores", On: "mnist", Done: done, Total: 3, Images: 70})
	}
	if !strings.Contains(remarks.String(), "100%  on mnist  10 images/s  in 21s") {
		t.Errorf("%q, want 10 images/s at the end", remarks)
	}
}

// Predictions and features name the images, since data have several splits of one name.
func TestSubject(t *testing.T) {
	c, _, remarks, _ := testConsole()
	observe := c.observer("run")
	for _, e := range []bayes.Event{
		{Task: "predict", On: "flowers", Of: 20, Done: 3, Total: 3}, {Task: "predict", On: "flowers", Of: 1, Done: 3, Total: 3},
		{Task: "features", On: "images", Of: 7, Done: 7, Total: 7},
	} {
		observe(e)
	}
	want := "predict 100%  on 20 images of flowers  in 0s\npredict 100%  on 1 image of flowers  in 0s\nfeatures 100%  on 7 images  in 0s\n"
	if remarks.String() != want {
		t.Errorf("%q, want %q", remarks, want)
	}
}

// Lost results are a failure, even if a command does not check.
func TestLostResults(t *testing.T) {
	for code, to := range map[int]io.Writer{0: io.Discard, exitFailure: lost{}} {
		c, _, remarks, _ := testConsole()
		c.out = &progress.Results{To: to}
		if got := run([]string{"datasets"}, c); got != code {
			t.Errorf("exit code %d, want %d: %s", got, code, remarks)
		}
	}
}

// lost is a writer that always fails.
type lost struct{}

func (lost) Write([]byte) (int, error) { return 0, errors.New("no room") }

// A run that was stopped in its warm start has made epochs, although no steps.
func TestRemarkKept(t *testing.T) {
	c, _, remarks, _ := testConsole()
	remarkKept(&bayes.UnfinishedError{Dir: "run", Steps: 10, WarmEpochs: 3}, c)
	want := "run: 0 of 10 steps done, 0 samples kept.\nThe warm start has made 3 epochs, which are kept, too.\nContinue with: pollen fit --resume run\n"
	if remarks.String() != want {
		t.Errorf("%q, want %q", remarks, want)
	}
}

func TestProgram(t *testing.T) {
	for _, c := range []struct {
		file string
		err  error
		want string
	}{
		{"x/go-build1234/b001/exe/pollen", nil, "go run ./cmd/pollen"},
		{"x/go-build1234/b001/command.test", nil, "pollen"},
		{"bin/pollen", nil, "pollen"},
		{"", errors.New("unknown"), "pollen"},
	} {
		if got := program(c.file, c.err); got != c.want {
			t.Errorf("program of %q is started by %q, want %q", c.file, got, c.want)
		}
	}
}

// TestFitStatus: the negative log-likelihood and the accuracy of a progress line are both of the
// average.
func TestFitStatus(t *testing.T) {
	e := bayes.Event{
		Loss: 0.5, Accuracy: 0.8, Temperature: math.NaN(), RHat: math.NaN(),
		ValidationLoss: 0.9, ValidationAccuracy: 0.6, ValidationNLL: 0.7, AverageAccuracy: 0.75,
	}
	if got, want := fitStatus(e), "loss 0.5000  acc 0.8000  validation NLL 0.700 acc 0.750"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Remarks that differ only in their numbers are shown three times in a task, and then counted.
func TestRemarksAlike(t *testing.T) {
	c, _, remarks, _ := testConsole()
	observe, nan := c.observer("sghmc"), math.NaN()
	event := bayes.Event{Task: "fit", On: "x", Total: 9, Loss: nan, Temperature: nan, RHat: nan, ValidationLoss: nan, ValidationNLL: nan}
	observe(event)
	for i := range 6 {
		observe(bayes.Event{Remark: fmt.Sprintf("chain %d diverged in step %d", i, 10*i)})
	}
	observe(bayes.Event{Remark: "another remark"})
	if got := remarks.String(); strings.Count(got, "diverged") != 3 || !strings.Contains(got, "counted at the end") || !strings.Contains(got, "another remark") {
		t.Errorf("in the task: %s", got)
	}
	c.endProgress()
	if got := remarks.String(); strings.Count(got, "3 remarks like those above; the last: sghmc: chain 5 diverged in step 50") != 1 {
		t.Errorf("at the end: %s", got)
	}
	before := remarks.Len()
	c.endProgress()
	for range 5 {
		observe(bayes.Event{Remark: "chain 7 diverged in step 1"})
	}
	if got := remarks.String()[before:]; strings.Count(got, "diverged") != 5 {
		t.Errorf("outside of a task: %s", got)
	}
}
