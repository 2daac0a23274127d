package main

import (
	"context"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/tensor"
)

// subject is a small run in this process, once complete and once stopped in the middle.
type subject struct {
	data        *datasets.Splits
	spec        bayes.Spec
	host        tensor.Device
	whole, half string // directories
	scores      string
	want        map[string][]byte
}

// squares returns images of noise with a bright square whose position is the class.
func squares(n int, noise uint32) (*datasets.Dataset, error) {
	const side, classes = 8, 4
	images, labels := make([]byte, 0, n*side*side), make([]int32, n)
	for i := range n {
		labels[i] = int32(i % classes)
		for y := range side {
			for x := range side {
				noise = noise*1664525 + 1013904223
				pixel := byte(noise >> 26)
				if y/4 == i%classes/2 && x/4 == i%classes%2 {
					pixel = 220
				}
				images = append(images, pixel)
			}
		}
	}
	return datasets.New("squares", images, labels, 1, side, side, nil)
}

func (h *harness) subject() (s *subject, err error) {
	for _, name := range []string{"subject", "half"} { // left by another stage
		if err := os.RemoveAll(filepath.Join(h.work, name)); err != nil {
			return nil, errors.Wrap(err, "subject")
		}
	}
	s = &subject{data: &datasets.Splits{}, host: tensor.NewHost(1), whole: filepath.Join(h.work, "subject"), half: filepath.Join(h.work, "half")}
	if s.data.Train, err = squares(60, 1); err != nil {
		return nil, err
	}
	if s.data.Validation, err = squares(40, 2); err != nil {
		return nil, err
	}
	if s.data.Test, err = squares(40, 3); err != nil {
		return nil, err
	}
	s.spec = bayes.Spec{Network: "mlp-2", Method: langevin.SGHMC{Friction: 0.1}, Batch: 10, Epochs: 4, Samples: 3, Chains: 2}
	if _, err := bayes.Fit(context.Background(), s.spec, s.data, s.whole, bayes.WithDevice(s.host)); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	_, err = bayes.Fit(ctx, s.spec, s.data, s.half, bayes.WithDevice(s.host), bayes.WithObserver(func(e bayes.Event) {
		if e.Done >= 17 {
			stop()
		}
	}))
	stop()
	var unfinished *bayes.UnfinishedError
	if !errors.As(err, &unfinished) {
		return nil, errors.Errorf("the run did not stop: %v", err)
	}
	if s.want, err = results(s.whole); err != nil {
		return nil, err
	}
	s.scores, _, err = s.score(s.whole)
	return s, err
}

// score returns everything that is computed from a run, with all digits, and the remarks.
func (s *subject) score(dir string) (scores, remarks string, err error) {
	run, err := bayes.Open(dir, bayes.WithDevice(s.host), bayes.WithObserver(func(e bayes.Event) { remarks += e.Remark + "\n" }))
	if err != nil {
		return "", remarks, err
	}
	a, err := run.Assess(context.Background(), s.data.Test, nil)
	if err != nil {
		return "", remarks, err
	}
	answers, err := run.Predict(context.Background(), s.data.Test)
	if err != nil {
		return "", remarks, err
	}
	d, err := run.Diagnostics()
	if err != nil {
		return "", remarks, err
	}
	m := run.Manifest()
	return textOf(a.Values) + textOf(answers) + textOf(d) + textOf(m.Spec) + textOf(m.Data), remarks, nil
}

// flips flips bits of every file of both runs, and reads, verifies and resumes them.
func flips(h *harness) error {
	s, err := h.subject()
	if err != nil {
		return err
	}
	defer s.host.Close()
	random := rand.New(rand.NewPCG(h.seed, 4))
	harmless, refused, total := map[string]int{}, 0, 0
	for _, from := range []string{s.whole, s.half} {
		files, err := filesOf(from)
		if err != nil {
			return err
		}
		for i := range h.flips / 2 {
			if h.ctx.Err() != nil {
				break
			}
			if total++; total%1000 == 0 {
				h.report("%d flips", total)
			}
			name := files[i%len(files)]
			same, err := s.flip(h, from, name, random)
			if err != nil {
				return err
			}
			if same {
				harmless[name]++
			} else {
				refused++
			}
		}
	}
	h.report("%d flips: %d caused errors that name the file, the others changed nothing: %v", total, refused, harmless)
	return nil
}

// filesOf returns all files of a run.
func filesOf(dir string) (names []string, err error) {
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && entry.Name() != "lock" { // the lock is empty
			name, _ := filepath.Rel(dir, path)
			names = append(names, name)
		}
		return err
	})
	return names, errors.Wrap(err, "files")
}

// flip flips a bit of a file, and reports whether nothing that is read from the run changed.
func (s *subject) flip(h *harness, from, name string, random *rand.Rand) (same bool, err error) {
	dir := filepath.Join(h.work, "flipped")
	if err := os.RemoveAll(dir); err != nil {
		return false, err
	}
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		return false, err
	}
	path := filepath.Join(dir, name)
	content, err := os.ReadFile(path)
	if err != nil {
		return false, err
	}
	at, bit := random.IntN(len(content)), random.IntN(8)
	content[at] ^= 1 << bit
	if err := os.WriteFile(path, content, 0o644); err != nil {
		return false, err
	}
	same = true
	refusal := func(what string, err error) {
		same = false
		if !strings.Contains(err.Error(), filepath.Base(name)) {
			h.fail("%s: bit %d of byte %d of %s: %s: the error does not name it: %v", from, bit, at, name, what, err)
		}
	}
	if from == s.whole {
		switch scores, _, err := s.score(dir); {
		case err != nil:
			refusal("score", err)
		case scores != s.scores:
			h.fail("bit %d of byte %d of %s: the scores changed silently", bit, at, name)
		}
	}
	v, err := bayes.Verify(dir)
	switch {
	case err != nil:
		refusal("verify", err)
	case len(v.Damaged) == 0 && !strings.HasPrefix(name, "writer"):
		h.fail("%s: bit %d of byte %d of %s: verify does not see it", from, bit, at, name)
	case len(v.Damaged) > 0 && !strings.Contains(v.String(), filepath.Base(name)):
		h.fail("%s: bit %d of byte %d of %s: verify does not name it: %v", from, bit, at, name, v)
	}
	if _, err := bayes.Resume(context.Background(), dir, s.data, bayes.WithDevice(s.host)); err != nil {
		refusal("resume", err)
		return same, nil
	}
	got, err := results(dir)
	if err != nil {
		return false, err
	}
	d := difference(s.want, got)
	if d != "" && name != "diagnostics.json" { // its damage is found when it is read
		h.fail("%s: bit %d of byte %d of %s: resumed, %s", from, bit, at, name, d)
	}
	return same, nil
}
