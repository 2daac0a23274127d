package command

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/pollen-ml/pollen"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/progress"
)

// console is where a command talks to a person: results on out, progress and remarks on err.
type console struct {
	out  *progress.Results
	err  io.Writer
	live bool // err is a terminal whose last line can be rewritten
	now  func() time.Time

	shown  *progress.Line // what is under way
	looked time.Time      // when its last event came
}

func newConsole() *console {
	width, height, err := term.GetSize(int(os.Stderr.Fd())) // an error where there is no terminal
	live := err == nil && width > 0 && height > 0 && os.Getenv("TERM") != "dumb"
	return &console{out: &progress.Results{To: os.Stdout}, err: os.Stderr, live: live, now: time.Now}
}

// program is how this program, whose file that is, is started, for commands that it suggests: go
// run puts the file where nobody finds it.
func program(file string, err error) string {
	dir := filepath.ToSlash(filepath.Dir(file))
	if err == nil && strings.Contains(dir, "/go-build") && strings.HasSuffix(dir, "/exe") {
		return "go run ./cmd/pollen"
	}
	return "pollen"
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
		if key := e.Task + e.On; c.shown == nil || key != task || e.Done < c.shown.Done() {
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
		if jump := progress.ClockJump(c.looked, now); jump != 0 {
			c.remark("the clock jumped by %v: times of files and logs before and after do not compare", jump)
		}
		c.looked = now
		c.shown.Update(e.Done, status)
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
		c.shown.End()
		c.shown = nil
	}
}

// reading shows progress: downloads by name and size, pictures as they are decoded.
func (c *console) reading() func(file string, done, total int64) {
	announced := ""
	return func(file string, done, total int64) {
		_, err := os.Stat(file)
		images := err == nil || strings.HasSuffix(file, " pictures") // a folder, a file, several paths at a time
		switch {
		case file != announced && !images:
			c.remark("downloading %s, %.1f MB", file, float64(total)/1e6)
		case file != announced:
			c.endProgress()
			c.shown = c.progress("reading", int(done), int(total))
		}
		announced = file
		if !images || c.shown == nil {
			return
		}
		status := fmt.Sprintf("%d of %d pictures", done, total)
		if err == nil {
			status += " in " + file
		}
		c.shown.Update(int(done), status)
		if done == total {
			c.endProgress()
		}
	}
}

// skipped reports which files of a data set were left out. Splits that were drawn share them.
func (c *console) skipped(splits ...*datasets.Dataset) {
	name, left := "", []string{}
	for _, data := range splits {
		if data != nil {
			name, left = data.Name, append(left, data.Skipped...)
		}
	}
	slices.Sort(left)
	if left = slices.Compact(left); len(left) > 0 {
		c.remark("%s: %s left out, first %s", name, counted(len(left), "file"), left[0])
	}
}

// progress begins to show work, some of which may be done already.
func (c *console) progress(name string, done, total int) *progress.Line {
	return progress.Begin(progress.Options{To: c.err, Live: c.live, Now: c.now}, name, done, total)
}
