package command

import (
	"io"
	"log/slog"
	"os"
	"sync"

	"github.com/pkg/errors"
)

// accessLog is the file of serve's access log. It is safe for concurrent use.
type accessLog struct {
	path string // "" is no log, "-" is out
	out  io.Writer
	c    *console

	mu     sync.Mutex
	file   *os.File
	failed bool // the last record was not written
}

// openAccessLog opens the log that the flag --access-log names.
func openAccessLog(path string, c *console) (*accessLog, error) {
	l := &accessLog{path: path, out: c.out, c: c}
	return l, l.reopen()
}

// logger returns the logger that package serve writes to, or nil.
func (l *accessLog) logger() *slog.Logger {
	if l.path == "" {
		return nil
	}
	return slog.New(slog.NewJSONHandler(l, nil))
}

// reopen opens the file again: a program that rotates logs has renamed it.
func (l *accessLog) reopen() error {
	if l.path == "" || l.path == "-" {
		return nil
	}
	file, err := os.OpenFile(l.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o640)
	if err != nil {
		return errors.Wrap(err, "pollen: --access-log")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.file
	l.file, l.out = file, file
	if before != nil {
		return errors.Wrap(before.Close(), "pollen: --access-log")
	}
	return nil
}

// Write implements io.Writer. It remarks when records begin to fail: a server without a log
// continues to answer.
func (l *accessLog) Write(record []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := l.out.Write(record)
	if err != nil && !l.failed {
		l.c.remark("pollen: --access-log: %v; requests are not logged", err)
	}
	l.failed = err != nil
	return n, err
}

// Close closes the file.
func (l *accessLog) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}
