package command

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pkg/errors"
	"golang.org/x/term"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/internal/progress"
)

// console is the output of a command: results on out, progress and remarks on err.
type console struct {
	out  *progress.Results
	err  io.Writer
	live bool // err is a terminal whose last line can be rewritten
	now  func() time.Time

	shown  *progress.Line // the work in progress
	begun  time.Time      // time of its first event
	looked time.Time      // time of its last event
	images int            // processed since begun
	alike  []alike        // remarks during the work in progress, in order
	also   bayes.Observer // receives the events of runs, too, unless it is nil
}

func newConsole() *console {
	width, height, err := term.GetSize(int(os.Stderr.Fd())) // an error where there is no terminal
	live := err == nil && width > 0 && height > 0 && os.Getenv("TERM") != "dumb"
	return &console{out: &progress.Results{To: os.Stdout}, err: os.Stderr, live: live, now: time.Now}
}

// program returns the command that starts this program, for the commands that it suggests. A file
// in go run's build directory is gone when the program ends.
func program(file string, err error) string {
	dir := filepath.ToSlash(filepath.Dir(file))
	if err == nil && strings.Contains(dir, "/go-build") && strings.HasSuffix(dir, "/exe") {
		return "go run ./cmd/pollen"
	}
	return "pollen"
}

// alike are remarks that differ only in their numbers, such as those on chains that diverge.
type alike struct {
	pattern string
	left    int    // not shown yet
	last    string // of them
	shown   int
}

// maxAlike is the number of remarks alike that are shown while a task is in progress. The others
// are counted at its end.
const maxAlike = 3

var digits = regexp.MustCompile("[0-9]+")

// remarkOnce shows a remark, unless too many like it were shown during the work in progress.
func (c *console) remarkOnce(text string) {
	if c.shown == nil {
		c.remark("%s", text)
		return
	}
	pattern := digits.ReplaceAllString(text, "0")
	i := slices.IndexFunc(c.alike, func(a alike) bool { return a.pattern == pattern })
	if i < 0 {
		i, c.alike = len(c.alike), append(c.alike, alike{pattern: pattern})
	}
	a := &c.alike[i]
	if a.shown == maxAlike {
		a.left, a.last = a.left+1, text
		return
	}
	a.shown++
	c.remark("%s", text)
	if a.shown == maxAlike {
		c.remark("more remarks like this one are counted at the end")
	}
}

func (c *console) remark(text string, values ...any) { progress.Remark(c.err, text, values...) }

// keepFeatures returns the option to keep features of frozen networks in the user's cache
// directory. If there is no such directory, which the reader of image directories has already
// reported, they are not kept.
func keepFeatures() bayes.Option {
	dir, err := os.UserCacheDir()
	if err != nil {
		return nil
	}
	return bayes.WithFeatureCache(filepath.Join(dir, "pollen", "features"))
}

// observer returns an Observer that shows a progress line for each task of the named run.
func (c *console) observer(name string) bayes.Observer {
	task, scores := "", ""
	return func(e bayes.Event) {
		if c.also != nil {
			c.also(e)
		}
		if e.Remark != "" {
			c.remarkOnce(name + ": " + e.Remark)
			return
		}
		now := c.now()
		if key := e.Task + subject(e); c.shown == nil || key != task || e.Done < c.shown.Done() {
			c.endProgress()
			task = key
			title := name
			if e.Task != "fit" {
				title = e.Task
			}
			c.shown = c.progress(title, e.Done, e.Total)
			scores = ""
			c.begun, c.looked, c.images = now, now, -e.Images
		}
		status := "on " + subject(e)
		if e.Task == "fit" || e.Task == "pilot" || e.Task == "warm start" {
			if !math.IsNaN(e.Loss) { // else an event within a window of steps
				scores = fitStatus(e)
			}
			status = cmp.Or(scores, status)
		}
		c.images += e.Images
		images, since := e.Images, c.looked
		if e.Done == e.Total { // the last line has the speed of all the work
			images, since = c.images, c.begun
		}
		if seconds := now.Sub(since).Seconds(); seconds > 0 && images > 0 {
			status += fmt.Sprintf("  %.0f images/s", float64(images)/seconds)
		}
		if jump := progress.ClockJump(c.looked, now); jump != 0 {
			c.remark("the clock jumped by %v: times of files and logs before and after it are not comparable", jump)
		}
		c.looked = now
		c.shown.Update(e.Done, status)
	}
}

// subject names the data of an event. Files that have no data set are called images.
func subject(e bayes.Event) string {
	switch {
	case e.Of == 0:
		return e.On
	case e.On == "images":
		return counted(e.Of, "image")
	}
	return counted(e.Of, "image") + " of " + e.On
}

// fitStatus formats the metrics of the last window of steps.
func fitStatus(e bayes.Event) string {
	status := fmt.Sprintf("loss %s  acc %.4f", lossText(e.Loss), e.Accuracy)
	if math.IsNaN(e.ValidationNLL) && !math.IsNaN(e.ValidationLoss) { // of a warm start
		status += fmt.Sprintf("  held-out loss %s", lossText(e.ValidationLoss))
	}
	if !math.IsNaN(e.ValidationNLL) {
		status += fmt.Sprintf("  validation NLL %.3f acc %.3f", e.ValidationNLL, e.AverageAccuracy) // both of the average
	}
	if !math.IsNaN(e.Temperature) {
		status += fmt.Sprintf("  T %.3g", e.Temperature)
	}
	if !math.IsNaN(e.RHat) {
		status += fmt.Sprintf("  R-hat %.2f", e.RHat)
	}
	return status
}

// lossText formats a loss. The mean over the chains is huge while one of them diverges.
func lossText(loss float64) string {
	if math.Abs(loss) >= 1e4 {
		return fmt.Sprintf("%.3g", loss)
	}
	return fmt.Sprintf("%.4f", loss)
}

// endProgress ends the current progress line, and leaves it on the screen.
func (c *console) endProgress() {
	if c.shown != nil {
		c.shown.End()
		c.shown = nil
	}
	for _, a := range c.alike {
		if a.left > 0 {
			c.remark("%s like those above; the last: %s", counted(a.left, "remark"), a.last)
		}
	}
	c.alike = nil
}

// reading returns a callback that shows downloads by name and size, and images as they are decoded.
func (c *console) reading() func(file string, done, total int64) {
	announced := ""
	return func(file string, done, total int64) {
		_, err := os.Stat(file)
		images := err == nil || strings.HasSuffix(file, " images") // a directory, a file, several paths at a time
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
		status := fmt.Sprintf("%d of %d images", done, total)
		if err == nil {
			status += " in " + file
		}
		c.shown.Update(int(done), status)
		if done == total {
			c.endProgress()
		}
	}
}

// json prints a value as indented JSON.
func (c *console) json(value any) error {
	encoder := json.NewEncoder(c.out)
	encoder.SetIndent("", "  ")
	return errors.Wrap(encoder.Encode(value), "pollen: json")
}

// progress starts a progress line, with done of total already done.
func (c *console) progress(name string, done, total int) *progress.Line {
	return progress.Begin(progress.Options{To: c.err, Live: c.live, Now: c.now}, name, done, total)
}

// counted returns "1 sample", "2 samples".
func counted(n int, what string) string {
	switch {
	case n != 1 && strings.HasSuffix(what, "s"):
		what += "es"
	case n != 1:
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
