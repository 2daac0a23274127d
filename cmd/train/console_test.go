package main

import (
	"bytes"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pkg/errors"
)

// testConsole is a console without a terminal, whose clock the test sets.
func testConsole() (c *console, out, remarks *bytes.Buffer, clock *time.Time) {
	out, remarks, clock = &bytes.Buffer{}, &bytes.Buffer{}, &time.Time{}
	return &console{out: &results{to: out}, err: remarks, now: func() time.Time { return *clock }}, out, remarks, clock
}

func TestPlainProgress(t *testing.T) {
	c, out, remarks, clock := testConsole()
	p := c.progress("sgld", 0, 400)
	for _, step := range []struct {
		done  int
		after time.Duration
	}{{1, time.Second}, {100, 8 * time.Second}, {101, time.Second}, {102, time.Second}, {200, 9 * time.Second}, {400, time.Minute}} {
		*clock = clock.Add(step.after)
		p.update(step.done, "loss 1")
	}
	p.end()
	want := "sgld    25%  loss 1  eta 30s\nsgld    50%  loss 1  eta 20s\nsgld   100%  loss 1  in 1m20s\n"
	if diff := cmp.Diff(want, remarks.String()); diff != "" {
		t.Error(diff)
	}
	if out.Len() > 0 {
		t.Errorf("%q among the results", out)
	}
}

// Work done before this process took none of its time.
func TestResumedProgress(t *testing.T) {
	c, _, remarks, clock := testConsole()
	p := c.progress("sgld", 300, 400)
	*clock = clock.Add(10 * time.Second)
	p.update(350, "loss 1")
	p.end()
	if got, want := remarks.String(), "sgld    87%  loss 1  eta 10s\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A live line ends whether the work is done or not.
func TestLiveProgressEnds(t *testing.T) {
	for _, done := range []int{0, 7, 10} {
		c, _, _, _ := testConsole()
		c.live = true
		p := c.progress("sgld", 0, 10)
		p.update(done, "loss 1")
		p.end()
	}
	c, _, _, _ := testConsole()
	c.live = true
	c.progress("sgld", 10, 10).end()
}

// Lost results are a failure, even if a command does not check.
func TestLostResults(t *testing.T) {
	for code, to := range map[int]io.Writer{0: io.Discard, exitFailure: lost{}} {
		c, _, remarks, _ := testConsole()
		c.out = &results{to: to}
		if got := run([]string{"datasets"}, c); got != code {
			t.Errorf("exit code %d, want %d: %s", got, code, remarks)
		}
	}
}

// lost cannot be written to.
type lost struct{}

func (lost) Write([]byte) (int, error) { return 0, errors.New("no room") }
