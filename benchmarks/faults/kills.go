package main

import (
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

// victim is a way to train that is killed.
type victim struct {
	name     string
	flags    string
	emulated bool
}

const victimFlags = "fit --data notmnist --validation 0.2 --chains 2 "

var victims = []victim{
	{"sghmc", "--model mlp-32 --method sghmc --schedule constant:0.002 --batch 10 --epochs 100 --burn-in 10 --samples 20", false},
	{"sgnht", "--model mlp-32 --method sgnht --schedule constant:0.002 --batch 10 --epochs 100 --burn-in 10 --samples 20", false},
	{"replicas", "--model mlp-4 --method sgld --schedule constant:0.02 --temperatures 1,1.02 --batch 10 --epochs 40 --burn-in 10 --samples 20", false},
	{"cyclical", "--model mlp-32 --method sghmc --cycles 4 --schedule cyclical:0.02,4 --batch 10 --epochs 100 --burn-in 10 --samples 20", false},
	{"variates", "--model mlp-8 --method sgld --schedule constant:0.02 --anchor 2 --batch 10 --epochs 40 --burn-in 10 --samples 20", false},
	{"swag", "--model mlp-32 --method swag:rank=5 --batch 10 --epochs 100 --burn-in 10 --samples 10", false},
	{"bbb", "--model mlp-8 --method bbb --batch 10 --epochs 30 --samples 10", false},
	{"hmc", "--model mlp-8 --method hmc:leaps=5 --subset 40 --batch 40 --epochs 600 --burn-in 100 --samples 20", false},
	{"emulated", "--device cuda --model mlp-4 --method sghmc --schedule constant:0.002 --batch 10 --epochs 6 --burn-in 1 --samples 10", true},
}

// mostKills is how often one run is killed before it may end.
const mostKills = 5

// kills kills each victim its share of times.
func kills(h *harness) error {
	random := rand.New(rand.NewPCG(1, 2))
	killed, victims := 0, victims
	if h.victims != "" {
		named := strings.Split(h.victims, ",")
		victims = slices.DeleteFunc(slices.Clone(victims), func(v victim) bool { return !slices.Contains(named, v.name) })
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
		if share == 0 {
			continue
		}
		began := time.Now()
		if err := v.kill(h, environment, share, random); err != nil {
			return errors.WithMessage(err, v.name)
		}
		killed += share
		h.report("%s: killed %d times in %s", v.name, share, time.Since(began).Round(time.Second))
	}
	h.report("%d kills", killed)
	return nil
}

func (v victim) kill(h *harness, environment []string, share int, random *rand.Rand) error {
	fit := strings.Fields(victimFlags + v.flags)
	wholeFolder := v.name + "-whole"
	began := time.Now()
	if _, err := h.must(environment, append(fit, "--folder", wholeFolder)...); err != nil {
		return err
	}
	takes := time.Since(began)
	want, err := results(filepath.Join(h.work, wholeFolder))
	if err != nil {
		return err
	}
	wantTable, err := h.must(environment, "eval", "--page", "page", wholeFolder)
	if err != nil {
		return err
	}
	for done, round := 0, 0; done < share; round++ {
		folder := fmt.Sprintf("%s-%d", v.name, round)
		next := append(fit, "--folder", folder)
		for n := 0; n < mostKills && done < share; {
			if _, err := os.Stat(filepath.Join(h.work, folder, "manifest.json")); err == nil {
				next = []string{"fit", "--resume", folder}
			}
			p, err := h.start(environment, next...)
			if err != nil {
				return err
			}
			select {
			case <-p.ended: // before it was killed
				if code := p.ProcessState.ExitCode(); code != 0 {
					h.fail("%s: after %d kills: exit code %d: %s", folder, n, code, p.remarks.String())
				}
				n = mostKills
				continue
			case <-time.After(time.Duration(random.Float64() * float64(takes))):
			}
			if err := p.Process.Kill(); err != nil {
				continue // it ended just now
			}
			<-p.ended
			n, done = n+1, done+1
			if lost := acknowledged(filepath.Join(h.work, folder), want); lost != "" {
				h.fail("%s: kill %d: %s", folder, n, lost)
			}
		}
		if _, err := os.Stat(filepath.Join(h.work, folder, "manifest.json")); err == nil {
			next = []string{"fit", "--resume", folder}
		}
		if p, code, err := h.end(environment, next...); err != nil || code != 0 {
			h.fail("%s: resumed: exit code %d (%v): %s", folder, code, err, p.remarks.String())
			continue
		}
		got, err := results(filepath.Join(h.work, folder))
		if err != nil {
			return err
		}
		if d := difference(want, got); d != "" {
			h.fail("%s: %s", folder, d)
		}
		table, err := h.must(environment, "eval", "--page", "page", folder)
		if err != nil {
			return err
		}
		normal := func(text, folder string) string {
			return strings.ReplaceAll(strings.ReplaceAll(text, folder, "RUN"), " ", "")
		}
		if a, b := normal(wantTable.out.String(), wholeFolder), normal(table.out.String(), folder); strings.ReplaceAll(a, "-", "") != strings.ReplaceAll(b, "-", "") {
			h.fail("%s: the table differs:\n%s\n%s", folder, a, b)
		}
		if p, code, err := h.end(environment, "verify", folder); err != nil || code != 0 {
			h.fail("%s: verify: exit code %d (%v): %s", folder, code, err, p.out.String())
		}
	}
	return nil
}

// acknowledged says which sample that the index lists is not there, or not the whole run's.
func acknowledged(folder string, want map[string][]byte) string {
	index, err := os.ReadFile(filepath.Join(folder, "index.jsonl"))
	if err != nil {
		return "" // it was killed before there was one
	}
	lines := strings.SplitAfter(string(index), "\n")
	for _, line := range lines {
		_, rest, listed := strings.Cut(line, `{"file":"samples/`)
		name, _, _ := strings.Cut(rest, `"`)
		if !listed || !strings.HasSuffix(line, "\n") {
			continue
		}
		name = "samples/" + name
		content, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return name + " was listed, and is lost"
		}
		if string(content) != string(want[name]) {
			return name + " was listed, and differs"
		}
	}
	return ""
}
