package command

import (
	"fmt"
	"regexp"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
)

// digestFlags are the flags of verify about a run's digest.
type digestFlags struct {
	print    bool
	expected string
}

// digestPattern matches a digest.
var digestPattern = regexp.MustCompile("^[0-9a-f]{64}$")

// run checks the files of one run, and then prints its digest or compares it. Only the digest goes
// to the standard output, so that it can be signed as it is printed.
func (d *digestFlags) run(dirs []string, c *console) error {
	if len(dirs) != 1 {
		return usage("pollen: verify: --digest and --expect need the directory of one run, got %d", len(dirs))
	}
	if (d.expected != "" || !d.print) && !digestPattern.MatchString(d.expected) {
		return usage("pollen: verify: --expect must be a digest of 64 hexadecimal digits, got %q", d.expected)
	}
	dir := dirs[0]
	v, err := bayes.Verify(dir)
	if err != nil {
		return err
	}
	c.remark("%s: %v", dir, v)
	if len(v.Damaged) > 0 {
		return errors.WithStack(v.Damaged[0])
	}
	run, err := bayes.Open(dir)
	if err != nil {
		return err
	}
	digest, err := run.Digest()
	if err != nil {
		return err
	}
	if d.expected != "" && digest != d.expected {
		cause := errors.Errorf("the digest must be %s, got %s: it is another run, or was changed", d.expected, digest)
		return errors.WithStack(&bayes.DamagedError{File: dir, Cause: cause})
	}
	if d.print {
		fmt.Fprintln(c.out, digest)
	} else {
		c.remark("%s has this digest", dir)
	}
	return nil
}
