package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// TestRun: with few steps the estimates are rough, and the verdict says so; exact values, rows and
// the figure are there.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	var out bytes.Buffer
	if err := run(&out, dir, 200); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`model +weights +half of them +exact +estimate +95 % interval +accepted`,
		`linear regression +10 +5\.0 +5\.0 +\d`,
		`4-3-4, rank 1 +24 +12\.0 +6\.0 +\d`,
		`4-2-5, rank 1 +18 +9\.0 +5\.5 +\d`,
		`3-3-4-3, rank 1 +33 +16\.5 +4\.0 +\d`,
		`step size +lambda +raw +T loss +T +R-hat +trend +verdict`,
		`still move or disagree`,
	} {
		if !regexp.MustCompile(line).MatchString(out.String()) {
			t.Errorf("the output has no line like %q:\n%s", line, out.String())
		}
	}
	estimates := regexp.MustCompile(`linear regression +10 +5\.0 +5\.0 +(\S+)`).FindStringSubmatch(out.String())
	if got, err := strconv.ParseFloat(estimates[1], 64); err != nil || math.Abs(got-5) > 0.8 {
		t.Errorf("estimate of the linear regression = %v, %v, want about 5", got, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "llc.png")); err != nil {
		t.Error(err)
	}
}

func TestSteps(t *testing.T) {
	if err := run(t.Output(), t.TempDir(), 0); err == nil || err.Error() != "llc: steps must be at least 1, got 0" {
		t.Errorf("no steps: %v, want an error", err)
	}
}
