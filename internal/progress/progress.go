package progress

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

const (
	plainInterval = 10 * time.Second // interval between lines if there is no terminal
	speedInterval = 2 * time.Minute  // the remaining time is estimated from the speed over the last one or two of these
)

// Options configure where progress is shown, and the clock.
type Options struct {
	To   io.Writer
	Live bool // To is a terminal whose last line can be rewritten
	Now  func() time.Time
}

// Line shows the progress of one piece of work: a live line on a terminal, else a plain line every
// ten seconds.
type Line struct {
	Options
	name        string
	done        int
	total       int
	start, last time.Time
	since, next mark // the speed is measured from since; next replaces it after speedInterval
	bars        *mpb.Progress
	bar         *mpb.Bar
	mu          sync.Mutex
	status      string
}

// mark is the amount of work done at a point in time.
type mark struct {
	at   time.Time
	done int
}

// Begin starts a line for work of which done of total is already done. The caller must call End.
func Begin(o Options, name string, done, total int) *Line {
	name = printable(name)
	p := &Line{Options: o, name: name, total: total, done: done, start: o.Now()}
	p.last = p.start
	p.since = mark{p.start, done}
	p.next = p.since
	if o.Live {
		p.bars = mpb.New(mpb.WithOutput(o.To), mpb.WithWidth(20), mpb.WithRefreshRate(200*time.Millisecond))
		p.bar = p.bars.New(int64(total), mpb.BarStyle().Lbound("").Rbound("").Filler("█").Tip("█").Padding("░"),
			mpb.PrependDecorators(decor.Any(func(s decor.Statistics) string {
				// The carriage return is for Ctrl-C, whose echo moves the cursor.
				return fmt.Sprintf("\r%-6s %3d%% ", name, 100*s.Current/s.Total)
			})),
			mpb.AppendDecorators(decor.Any(func(decor.Statistics) string {
				p.mu.Lock()
				defer p.mu.Unlock()
				return p.status
			})))
		p.bar.SetCurrent(int64(done))
	}
	return p
}

// Done returns the amount of work done at the last Update.
func (p *Line) Done() int { return p.done }

// Update shows the amount of work done and a status.
func (p *Line) Update(done int, status string) {
	now, status := p.Now(), printable(status)
	p.done = done
	if now.Sub(p.next.at) >= speedInterval {
		p.since, p.next = p.next, mark{now, done}
	}
	if done == p.total {
		status = fmt.Sprintf("%s  in %s", status, now.Sub(p.start).Round(time.Second))
	} else if made := done - p.since.done; made > 0 {
		remaining := time.Duration(float64(now.Sub(p.since.at)) / float64(made) * float64(p.total-done))
		status = fmt.Sprintf("%s  eta %s", status, remaining.Round(time.Second))
	}
	if p.bar != nil {
		p.mu.Lock()
		p.status = status
		p.mu.Unlock()
		p.bar.SetCurrent(int64(done))
		return
	}
	if now.Sub(p.last) >= plainInterval || done == p.total {
		p.last = now
		fmt.Fprintf(p.To, "%-6s %3d%%  %s\n", p.name, 100*done/p.total, status)
	}
}

// End ends the line, and leaves it on the screen.
func (p *Line) End() {
	if p.bar != nil {
		if !p.bar.Completed() {
			p.bar.Abort(false)
		}
		p.bars.Wait()
	}
}
