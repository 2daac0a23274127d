package progress

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// plain are options without a terminal, whose clock the test sets.
func plain() (o Options, to *bytes.Buffer, clock *time.Time) {
	to, clock = &bytes.Buffer{}, &time.Time{}
	return Options{To: to, Now: func() time.Time { return *clock }}, to, clock
}

func TestPlainProgress(t *testing.T) {
	o, remarks, clock := plain()
	p := Begin(o, "sgld", 0, 400)
	for _, step := range []struct {
		done  int
		after time.Duration
	}{{1, time.Second}, {100, 8 * time.Second}, {101, time.Second}, {102, time.Second}, {200, 9 * time.Second}, {400, time.Minute}} {
		*clock = clock.Add(step.after)
		p.Update(step.done, "loss 1")
	}
	p.End()
	want := "sgld    25%  loss 1  eta 30s\nsgld    50%  loss 1  eta 20s\nsgld   100%  loss 1  in 1m20s\n"
	if diff := cmp.Diff(want, remarks.String()); diff != "" {
		t.Error(diff)
	}
}

// Work done before this process took none of its time.
func TestResumedProgress(t *testing.T) {
	o, remarks, clock := plain()
	p := Begin(o, "sgld", 300, 400)
	*clock = clock.Add(10 * time.Second)
	p.Update(350, "loss 1")
	p.End()
	if got, want := remarks.String(), "sgld    87%  loss 1  eta 10s\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The remaining time is estimated from the speed of the last minutes, so that the estimate
// recovers soon after other work has slowed the machine.
func TestProgressFollowsSpeed(t *testing.T) {
	o, remarks, clock := plain()
	p := Begin(o, "sgld", 0, 10000)
	done := 0
	for _, speed := range []int{1, 1, 10, 10, 10} { // of some minutes
		for range 4 {
			*clock = clock.Add(time.Minute)
			done += 60 * speed
			p.Update(done, "")
		}
	}
	p.End()
	lines := strings.Split(strings.TrimSpace(remarks.String()), "\n")
	for line, want := range map[int]string{
		7:  "sgld     4%    eta 2h38m40s", // 9520 at 1 a second
		11: "sgld    28%    eta 11m52s",   // 7120 at 10
		19: "sgld    76%    eta 3m52s",
	} {
		if lines[line] != want {
			t.Errorf("after %d minutes: %q, want %q", line+1, lines[line], want)
		}
	}
}

func TestClockJump(t *testing.T) {
	before := time.Now()
	now := before.Add(time.Hour) // by both clocks
	if jump := ClockJump(before, now); jump != 0 {
		t.Errorf("an hour later: %v", jump)
	}
	for wall, want := range map[time.Duration]time.Duration{
		0: -10 * time.Minute, 10 * time.Minute: 0, 10*time.Minute + 30*time.Second: 0, time.Hour: 50 * time.Minute,
	} {
		if jump := jumped(wall, 10*time.Minute); jump != want {
			t.Errorf("%v on the wall in ten minutes: %v, want %v", wall, jump, want)
		}
	}
}

// A live line ends whether the work is done or not.
func TestLiveProgressEnds(t *testing.T) {
	for _, done := range []int{0, 7, 10} {
		o, _, _ := plain()
		o.Live = true
		p := Begin(o, "sgld", 0, 10)
		p.Update(done, "loss 1")
		p.End()
	}
	o, _, _ := plain()
	o.Live = true
	Begin(o, "sgld", 10, 10).End()
}
