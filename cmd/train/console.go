package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/pkg/errors"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"github.com/pollen-ml/pollen"
	"github.com/pollen-ml/pollen/datasets"
)

// console is where a command talks to a person: results on out, progress and remarks on err.
type console struct {
	out  *results
	err  io.Writer
	live bool // err is a terminal whose last line can be rewritten
	now  func() time.Time

	shown  *progress // what is under way
	looked time.Time // when its last event came
}

func newConsole() *console {
	width, height, err := term.GetSize(int(os.Stderr.Fd())) // an error where there is no terminal
	live := err == nil && width > 0 && height > 0 && os.Getenv("TERM") != "dumb"
	return &console{out: &results{to: os.Stdout}, err: os.Stderr, live: live, now: time.Now}
}

func (c *console) remark(format string, values ...any) { fmt.Fprintf(c.err, format+"\n", values...) }

// observer shows how a run of that name goes: a line for each task.
func (c *console) observer(name string) pollen.Observer {
	task := ""
	return func(e pollen.Event) {
		if e.Remark != "" {
			c.remark("%s: %s", name, e.Remark)
			return
		}
		now := c.now()
		if key := e.Task + e.On; c.shown == nil || key != task || e.Done < c.shown.done {
			c.endProgress()
			task = key
			title := name
			if e.Task != "fit" {
				title = e.Task
			}
			c.shown = c.progress(title, e.Done, e.Total)
			c.looked = now
		}
		status := "on " + e.On
		if e.Task == "fit" {
			status = fitStatus(e)
		}
		if seconds := now.Sub(c.looked).Seconds(); seconds > 0 {
			status += fmt.Sprintf("  %.0f images/s", float64(e.Images)/seconds)
		}
		c.looked = now
		c.shown.update(e.Done, status)
	}
}

// fitStatus describes the last window of steps.
func fitStatus(e pollen.Event) string {
	status := fmt.Sprintf("loss %.4f  acc %.4f", e.Loss, e.Accuracy)
	if !math.IsNaN(e.Temperature) {
		status += fmt.Sprintf("  T %.3g", e.Temperature)
	}
	if !math.IsNaN(e.RHat) {
		status += fmt.Sprintf("  R-hat %.2f", e.RHat)
	}
	return status
}

// endProgress leaves the line of what was under way as it is.
func (c *console) endProgress() {
	if c.shown != nil {
		c.shown.end()
		c.shown = nil
	}
}

// reading shows progress: downloads by name and size, pictures as they are decoded.
func (c *console) reading() func(file string, done, total int64) {
	announced := ""
	return func(file string, done, total int64) {
		_, err := os.Stat(file)
		pictures := err == nil || strings.HasSuffix(file, " pictures") // a folder, a file, several paths at a time
		switch {
		case file != announced && !pictures:
			c.remark("downloading %s, %.1f MB", file, float64(total)/1e6)
		case file != announced:
			c.endProgress()
			c.shown = c.progress("reading", int(done), int(total))
		}
		announced = file
		if !pictures || c.shown == nil {
			return
		}
		status := fmt.Sprintf("%d of %d pictures", done, total)
		if err == nil {
			status += " in " + file
		}
		c.shown.update(int(done), status)
		if done == total {
			c.endProgress()
		}
	}
}

// skipped reports which files were left out.
func (c *console) skipped(splits ...*datasets.Dataset) {
	for _, data := range splits {
		if data != nil && len(data.Skipped) > 0 {
			c.remark("%s: %s could not be read and left out, first %s", data.Name, counted(len(data.Skipped), "file"), data.Skipped[0])
		}
	}
}

// results remembers the first failure to write, so that lost results end a command with an error.
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

// plainInterval is how often progress is written if there is no terminal.
const plainInterval = 10 * time.Second

// progress shows how far work is: a live line on a terminal, else a plain line now and then.
type progress struct {
	console     *console
	name        string
	done        int
	first       int // done before this was shown
	total       int
	start, last time.Time
	bars        *mpb.Progress
	bar         *mpb.Bar
	mu          sync.Mutex
	status      string
}

// progress begins to show work, some of which may be done already. end must be called.
func (c *console) progress(name string, done, total int) *progress {
	p := &progress{console: c, name: name, total: total, done: done, first: done, start: c.now()}
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

// update shows how much is done, and how it goes.
func (p *progress) update(done int, status string) {
	now := p.console.now()
	p.done = done
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
