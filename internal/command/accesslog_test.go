package command

import (
	"io"
	"strings"
	"testing"

	"github.com/pkg/errors"
)

// full is a writer that fails while it is full.
type full struct {
	io.Writer
	is bool
}

func (f *full) Write(p []byte) (int, error) {
	if f.is {
		return 0, errors.New("the disk is full")
	}
	return f.Writer.Write(p)
}

// Records that cannot be written get one remark, until one can be written again.
func TestAccessLogFails(t *testing.T) {
	c, _, remarks, _ := testConsole()
	var written strings.Builder
	disk := &full{Writer: &written}
	l, err := openAccessLog("-", c)
	if err != nil {
		t.Fatal(err)
	}
	l.out = disk
	logger := l.logger()
	for _, is := range []bool{false, true, true, false, true} {
		disk.is = is
		logger.Info("request")
	}
	records, failures := strings.Count(written.String(), `"msg":"request"`), strings.Count(remarks.String(), "--access-log: the disk is full")
	if records != 2 || failures != 2 {
		t.Errorf("%d records and %d remarks, want 2 and 2: %s", records, failures, remarks)
	}
	if none, err := openAccessLog("", c); err != nil || none.logger() != nil {
		t.Errorf("a logger without a file (%v)", err)
	}
	c, out, _, _ := testConsole()
	l, err = openAccessLog("-", c)
	if err != nil {
		t.Fatal(err)
	}
	l.logger().Info("request")
	if !strings.Contains(out.String(), `"msg":"request"`) {
		t.Errorf("the standard output has %q", out)
	}
}
