package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"
)

// console is where a command talks to a person: results on out, progress and remarks on err.
type console struct {
	out, err io.Writer
	live     bool // err is a terminal
}

func newConsole() *console {
	return &console{out: os.Stdout, err: os.Stderr, live: term.IsTerminal(int(os.Stderr.Fd()))}
}

func (c *console) remark(format string, values ...any) { fmt.Fprintf(c.err, format+"\n", values...) }

// plainInterval is how often progress is written where there is no terminal.
const plainInterval = 10 * time.Second

// progress shows how far a run is: a live line on a terminal, else a plain line now and then.
type progress struct {
	console *console
	name    string
	total   int
	start   time.Time
	first   int // steps made before this process
	last    time.Time
	bars    *mpb.Progress
	bar     *mpb.Bar
	mu      sync.Mutex
	status  string
	now     func() time.Time
}

func (c *console) progress(name string, done, total int) *progress {
	p := &progress{console: c, name: name, total: total, first: done, now: time.Now}
	p.start = p.now()
	p.last = p.start
	if c.live {
		p.bars = mpb.New(mpb.WithOutput(c.err), mpb.WithWidth(24), mpb.WithRefreshRate(200*time.Millisecond))
		p.bar = p.bars.New(int64(total), mpb.BarStyle().Lbound("").Rbound("").Filler("█").Tip("█").Padding("░"),
			mpb.PrependDecorators(decor.Name(fmt.Sprintf("%-6s", name)), decor.Percentage(decor.WCSyncSpace)),
			mpb.AppendDecorators(decor.Any(func(decor.Statistics) string {
				p.mu.Lock()
				defer p.mu.Unlock()
				return p.status
			})))
	}
	return p
}

// update tells that done steps have been made.
func (p *progress) update(done int, status string) {
	now := p.now()
	elapsed := now.Sub(p.start)
	remaining := time.Duration(0)
	if made := done - p.first; made > 0 {
		remaining = time.Duration(float64(elapsed) / float64(made) * float64(p.total-done))
	}
	status = fmt.Sprintf("%s  eta %s", status, remaining.Round(time.Second))
	if p.bar != nil {
		p.mu.Lock()
		p.status = status
		p.mu.Unlock()
		p.bar.SetCurrent(int64(done))
		return
	}
	if now.Sub(p.last) >= plainInterval || done == p.total {
		p.last = now
		p.console.remark("%-6s %3d%%  %s", p.name, 100*done/p.total, status)
	}
}

// end leaves the line as it is.
func (p *progress) end() {
	if p.bar != nil {
		if !p.bar.Completed() {
			p.bar.Abort(false)
		}
		p.bars.Wait()
	}
}
