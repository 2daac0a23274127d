package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"math/rand/v2"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/emulator"
)

// victim is a way to train, whose runs are killed.
type victim struct {
	name     string
	flags    string
	emulated bool
}

const victimFlags = "fit --data notmnist --validation 0.2 --chains 2 "

var victims = []victim{
	{"sghmc", "--model mlp-8 --method sghmc --schedule constant:0.002 --batch 10 --epochs 100 --burn-in 10 --samples 20", false},
	{"sgnht", "--model mlp-8 --method sgnht --schedule constant:0.002 --batch 10 --epochs 100 --burn-in 10 --samples 20", false},
	{"keep", "--model mlp-8 --method sghmc --schedule constant:0.002 --batch 10 --epochs 100 --burn-in 10 --samples 80 --keep 7", false},
	{"replicas", "--model mlp-4 --method sgld --schedule constant:0.02 --temperatures 1,1.02 --batch 10 --epochs 40 --burn-in 10 --samples 20", false},
	{"cyclical", "--model mlp-8 --method sghmc --cycles 4 --schedule cyclical:0.02,4 --batch 10 --epochs 100 --burn-in 10 --samples 20", false},
	{"variates", "--model mlp-8 --method sgld --schedule constant:0.02 --anchor 2 --batch 10 --epochs 40 --burn-in 10 --samples 20", false},
	{"swag", "--model mlp-8 --method swag:rank=5 --batch 10 --epochs 100 --burn-in 10 --samples 10", false},
	{"laplace", "--model mlp-8 --method laplace --batch 10 --epochs 30 --samples 10", false},
	{"bbb", "--model mlp-8 --method bbb --batch 10 --epochs 30 --samples 10", false},
	{"hmc", "--model mlp-8 --method hmc:leapfrog-steps=5 --subset 40 --batch 40 --epochs 600 --burn-in 100 --samples 20", false},
	{"emulated", "--device cuda --model mlp-4 --method sghmc --schedule constant:0.002 --batch 10 --epochs 6 --burn-in 1 --samples 10", true},
}

// maxKills is the maximum number of kills of a run, after which it may end.
const maxKills = 5

// kills divides the kills among the victims.
func kills(h *harness) error {
	random := rand.New(rand.NewPCG(h.seed, 2))
	killed, victims := 0, victims
	if h.victims != "" {
		all := victims
		victims = nil
		for _, name := range strings.Split(h.victims, ",") {
			at := slices.IndexFunc(all, func(v victim) bool { return v.name == name })
			if at < 0 {
				return errors.Errorf("there is no victim %q", name)
			}
			victims = append(victims, all[at])
		}
	}
	for i, v := range victims {
		var environment []string
		if v.emulated {
			library, err := emulator.Library()
			if err != nil {
				h.report("%s: left out: %v", v.name, err)
				continue
			}
			environment = []string{cuda.DriverVariable + "=" + library}
		}
		share := h.kills*(i+1)/len(victims) - h.kills*i/len(victims)
		if share == 0 || h.ctx.Err() != nil {
			continue
		}
		began := time.Now()
		done, err := v.kill(h, environment, share, random)
		if err != nil && h.ctx.Err() == nil {
			return errors.WithMessage(err, v.name)
		}
		killed += done
		h.report("%s: killed %d times in %s", v.name, done, time.Since(began).Round(time.Second))
	}
	h.report("%d kills", killed)
	return nil
}

// whole makes the run that is never killed.
func (v victim) whole(h *harness, environment []string, name string, fit []string) (map[string][]byte, error) {
	if _, err := h.must(environment, append(slices.Clone(fit), "--folder", name)...); err != nil {
		return nil, err
	}
	return results(filepath.Join(h.work, name))
}

// killing has the settings of a victim's kills, and the reference for its killed runs.
type killing struct {
	*harness
	environment, fit []string
	random           *rand.Rand
	takes            time.Duration     // duration of a run that is not killed
	want, drawn      map[string][]byte // results of that run; drawn includes samples that it dropped later
	table            string            // table of its scores
}

// kill kills runs share times, or until the context ends, and returns the number of kills of runs
// that were compared.
func (v victim) kill(h *harness, environment []string, share int, random *rand.Rand) (done int, err error) {
	k := killing{harness: h, environment: environment, fit: strings.Fields(victimFlags + v.flags), random: random}
	wholeDir := v.name + "-whole"
	began := time.Now()
	if k.want, err = v.whole(h, environment, wholeDir, k.fit); err != nil {
		return 0, err
	}
	k.takes = time.Since(began)
	if k.table, err = k.tableOf(wholeDir); err != nil {
		return 0, err
	}
	k.drawn = k.want
	if at := slices.Index(k.fit, "--keep"); at >= 0 {
		if k.drawn, err = v.whole(h, environment, v.name+"-drawn", slices.Delete(slices.Clone(k.fit), at, at+2)); err != nil {
			return 0, err
		}
	}
	for round := 0; done < share && h.ctx.Err() == nil; round++ {
		dir := fmt.Sprintf("%s-%d", v.name, round)
		n, err := k.run(dir, min(maxKills, share-done))
		if err != nil || h.ctx.Err() != nil {
			return done, err
		}
		compared, err := k.compare(dir)
		if err != nil || !compared {
			return done, err
		}
		done += n
		h.report("%s: %d of %d kills", dir, done, share)
	}
	return done, nil
}

// next returns the arguments that begin or resume a run.
func (k *killing) next(dir string) []string {
	if _, err := os.Stat(filepath.Join(k.work, dir, "manifest.json")); err == nil {
		return []string{"fit", "--resume", dir}
	}
	return append(slices.Clone(k.fit), "--folder", dir)
}

// run kills and resumes a run, at most limit times or until it ends, and returns the number of
// kills.
func (k *killing) run(dir string, limit int) (n int, err error) {
	for n < limit {
		began := time.Now()
		p, err := k.start(k.environment, k.next(dir)...)
		if err != nil {
			return n, err
		}
		select {
		case <-p.ended: // it ended before it was killed
			if n == 0 { // the machine was slower when takes was measured
				k.takes = min(k.takes, time.Since(began))
			}
			if code := p.ProcessState.ExitCode(); code != 0 && k.ctx.Err() == nil {
				k.fail("%s: after %d kills: exit code %d: %s", dir, n, code, p.remarks.String())
			}
			return n, nil
		case <-k.ctx.Done():
			_ = p.Process.Kill() // it may have ended
			<-p.ended
			return n, nil
		case <-time.After(time.Duration(k.random.Float64() * float64(k.takes))):
		}
		if err := p.Process.Kill(); err != nil {
			continue // it ended just now
		}
		<-p.ended
		n++
		if lost := acknowledged(filepath.Join(k.work, dir), k.drawn); lost != "" {
			k.fail("%s: kill %d: %s", dir, n, lost)
		}
	}
	return n, nil
}

// compare lets a killed run end, and compares its results with the run that was never killed. It
// returns false if the context ends.
func (k *killing) compare(dir string) (compared bool, err error) {
	p, code, err := k.end(k.environment, k.next(dir)...)
	if k.ctx.Err() != nil {
		return false, nil
	}
	if err != nil || code != 0 {
		k.fail("%s: resumed: exit code %d (%v): %s", dir, code, err, p.remarks.String())
		return true, nil
	}
	got, err := results(filepath.Join(k.work, dir))
	if err != nil {
		return false, err
	}
	if d := difference(k.want, got); d != "" {
		k.fail("%s: %s", dir, d)
	}
	table, err := k.tableOf(dir)
	if err != nil {
		return false, err
	}
	if table != k.table {
		k.fail("%s: the table differs:\n%s\n%s", dir, k.table, table)
	}
	if p, code, err = k.end(k.environment, "verify", dir); err != nil || code != 0 {
		k.fail("%s: verify: exit code %d (%v): %s", dir, code, err, p.out.String())
	}
	return true, nil
}

// tableOf returns the table of a run's scores, without the spacing, which depends on the run's
// name.
func (k *killing) tableOf(dir string) (string, error) {
	p, err := k.must(k.environment, "eval", "--page", "page", dir)
	if err != nil {
		return "", err
	}
	return strings.NewReplacer(" ", "", "-", "").Replace(strings.ReplaceAll(p.out.String(), dir, "RUN")), nil
}

// acknowledged returns a sample that the index lists but that is missing or differs from drawn, all
// samples of the run; "" if there is none.
func acknowledged(dir string, drawn map[string][]byte) string {
	index, err := os.ReadFile(filepath.Join(dir, "index.jsonl"))
	if err != nil {
		return "" // killed before there was an index
	}
	type line struct {
		File    string
		Dropped bool
	}
	listed := map[string]line{}
	for text := range strings.Lines(string(index)) {
		var l line
		if strings.HasSuffix(text, "\n") && json.Unmarshal([]byte(text), &l) == nil && strings.HasPrefix(l.File, "samples/") {
			listed[l.File] = l
		}
	}
	for name, l := range listed {
		content, err := os.ReadFile(filepath.Join(dir, name))
		switch {
		case l.Dropped:
		case err != nil:
			return name + " was listed, and is lost"
		case string(content) != string(drawn[name]):
			return name + " was listed, and differs"
		}
	}
	return ""
}
