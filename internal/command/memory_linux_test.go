package command

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/pollen-ml/pollen/internal/testenv"
)

// TestTooLittleMemory runs commands that need more than an address space of 1 GB leaves, some 100
// MB. They end with an error that gives the numbers, instead of the crash of a Go program that runs
// out of memory.
func TestTooLittleMemory(t *testing.T) {
	testenv.NeedsAll(t, "fifteen programs, and data of 500 MB")
	p := newProcesses(t)
	if err := writeArrays(p.path("bomb.npz"), 600000, 10, 28, 10); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"images/a", "images/b"} {
		if err := os.MkdirAll(p.path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p.path(dir+"/flat.png"), flatPNG(t, 4900), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p.want(0, "pollen", strings.Fields("fit --data notmnist --subset 100 --model mlp-4000-4000 --method sgd --epochs 1 --batch 50 --folder large"))
	if err := writeImages(p.path("pictures"), 1, 2); err != nil {
		t.Fatal(err)
	}
	p.want(0, "pollen", strings.Fields("fit --data notmnist --subset 100 --model mlp-4 --method sgd --epochs 1 --batch 50 --folder small"))
	for _, c := range []struct{ arguments, want string }{
		{"fit --method sgld --data notmnist --model mlp-40000-40000", "pollen: fit: keeping the weights of a chain needs "},
		{"fit --method sgld --data notmnist --model mlp-2000-2000 --batch 10", "pollen: fit"},
		{"fit --method sgld --data notmnist --model mlp-4 --batch 10 --chains 1000", "; less is needed with --chains "},
		{"fit --method sgld --data notmnist --model mlp-40000-40000 --estimate", "pollen: fit: keeping the weights of a chain needs "},
		{"fit --data notmnist --subset 200 --method hmc --model resnet20-frn", "pollen: fit needs "},
		{"fit --method sgld --data bomb.npz --model mlp-4", ": reading an array of 470400000 bytes needs "},
		{"fit --method sgld --data images --model mlp-4", "datasets: decoding "},
		{"predict small images", "datasets: decoding "},
		{"predict large pictures", "pollen: predict: large: predicting "},
		{"serve large --address 127.0.0.1:0", "pollen: predictor: large: loading 1 samples needs "},
		{"eval large", "pollen: predict: large: predicting "},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a server with enough memory does not end
		command := exec.CommandContext(ctx, "bash", "-c", "ulimit -v 1000000; exec pollen "+c.arguments)
		command.Dir, command.Env = p.dir, append(os.Environ(), "MALLOC_ARENA_MAX=1", "POLLEN_DATA="+p.path("data"), "XDG_CACHE_HOME="+p.path("cache"))
		var remarks bytes.Buffer
		command.Stderr = &remarks
		if err := command.Start(); err != nil {
			t.Skip(err)
		}
		_ = command.Wait()
		cancel()
		text := remarks.String()
		if code := command.ProcessState.ExitCode(); code != exitMemory || !strings.Contains(text, c.want) || !strings.Contains(text, " available (") {
			t.Errorf("%s: exit code %d, want %d with %q, got %.3000s", c.arguments, code, exitMemory, c.want, text)
		}
	}
}
