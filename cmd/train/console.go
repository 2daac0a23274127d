package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/pkg/errors"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"
)

// console is where a command talks to a person: results on out, progress and remarks on err.
type console struct {
	out  *results
	err  io.Writer
	live bool // err is a terminal whose last line can be rewritten
	now  func() time.Time
}

func newConsole() *console {
	width, height, err := term.GetSize(int(os.Stderr.Fd())) // an error where there is no terminal
	live := err == nil && width > 0 && height > 0 && os.Getenv("TERM") != "dumb"
	return &console{out: &results{to: os.Stdout}, err: os.Stderr, live: live, now: time.Now}
}

func (c *console) remark(format string, values ...any) { fmt.Fprintf(c.err, format+"\n", values...) }

// results remembers the first failure to write, so that a command whose results were lost does not end as if all were well.
type results struct {
	to  io.Writer
	err error
}

func (r *results) Write(p []byte) (int, error) {
	n, err := r.to.Write(p)
	if r.err == nil {
		r.err = errors.Wrap(err, "train: results")
	}
	return n, err
}

// plainInterval is how often progress is written where there is no terminal.
const plainInterval = 10 * time.Second

// progress shows how far a piece of work is: a live line on a terminal, else a plain line now and then.
type progress struct {
	console     *console
	name        string
	first       int // done before this process
	total       int
	start, last time.Time
	bars        *mpb.Progress
	bar         *mpb.Bar
	mu          sync.Mutex
	status      string
}

// progress begins to show a piece of work of which some may be done already. end must be called.
func (c *console) progress(name string, done, total int) *progress {
	p := &progress{console: c, name: name, total: total, first: done, start: c.now()}
	p.last = p.start
	if c.live {
		p.bars = mpb.New(mpb.WithOutput(c.err), mpb.WithWidth(20), mpb.WithRefreshRate(200*time.Millisecond))
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

// update tells how much is done, and how it goes.
func (p *progress) update(done int, status string) {
	now := p.console.now()
	elapsed := now.Sub(p.start)
	if done == p.total {
		status = fmt.Sprintf("%s  in %s", status, elapsed.Round(time.Second))
	} else if made := done - p.first; made > 0 {
		remaining := time.Duration(float64(elapsed) / float64(made) * float64(p.total-done))
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
