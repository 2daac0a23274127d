package command

import (
	"archive/zip"
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/internal/testenv"
)

// peakVariable names the file that mainWithPeak writes.
const peakVariable = "POLLEN_TEST_PEAK"

// mainWithPeak is like main, and writes the peak resident memory of the process, in kB.
func mainWithPeak() {
	code := run(os.Args[1:], newConsole())
	content, err := os.ReadFile("/proc/self/status")
	if err == nil {
		_, line, _ := strings.Cut(string(content), "VmHWM:")
		line, _, _ = strings.Cut(line, "kB")
		err = os.WriteFile(os.Getenv(peakVariable), []byte(strings.TrimSpace(line)), 0o644)
	}
	if err != nil {
		panic(err)
	}
	os.Exit(code)
}

// peakOf runs the program, and returns its output and its peak memory in bytes.
func peakOf(t *testing.T, dir string, arguments ...string) (stdout string, peak float64) {
	t.Helper()
	command := exec.Command("pollen-peak", arguments...)
	file := filepath.Join(t.TempDir(), "peak")
	command.Dir, command.Env = dir, append(os.Environ(), peakVariable+"="+file, "XDG_CACHE_HOME="+filepath.Join(dir, "cache"))
	var out, remarks bytes.Buffer
	command.Stdout, command.Stderr = &out, &remarks
	if err := command.Run(); err != nil {
		t.Fatalf("%v: %v\n%s", arguments, err, remarks.String())
	}
	t.Logf("%v of CPU", command.ProcessState.UserTime()+command.ProcessState.SystemTime())
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	kilobytes, err := strconv.ParseFloat(string(content), 64)
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), 1024 * kilobytes
}

// estimateOf returns the memory in bytes that a command reports.
func estimateOf(t *testing.T, stdout string) float64 {
	t.Helper()
	lines := bufio.NewScanner(strings.NewReader(stdout))
	for lines.Scan() {
		var value float64
		var unit string
		if _, err := fmt.Sscanf(lines.Text(), "memory: about %g %s at most", &value, &unit); err == nil {
			return value * map[string]float64{"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}[unit]
		}
	}
	t.Fatalf("no memory in %q", stdout)
	return 0
}

// writeArrays writes images of noise as NPZ. The position of a bright pixel is the class.
func writeArrays(path string, train, test, side, classes int) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	archive := zip.NewWriter(file)
	add := func(name, shape string, values []byte) {
		w, failed := archive.Create(name + ".npy")
		header := fmt.Sprintf("{'descr': '|u1', 'fortran_order': False, 'shape': %s, }\n", shape)
		if failed == nil {
			_, failed = w.Write(append(append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), 0), header...))
		}
		if failed == nil {
			_, failed = w.Write(values)
		}
		err = cmp.Or(err, failed)
	}
	noise := uint32(1)
	for i, n := range []int{train, test} {
		images, labels := make([]byte, n*side*side), make([]byte, n)
		for i := range images {
			noise = noise*1664525 + 1013904223
			images[i] = byte(noise >> 25)
		}
		for i := range labels {
			labels[i] = byte(i % classes)
			images[i*side*side+i%classes] = 255
		}
		split := []string{"train", "test"}[i]
		add(split+"_images", fmt.Sprintf("(%d, %d, %d)", n, side, side), images)
		add(split+"_labels", fmt.Sprintf("(%d,)", n), labels)
	}
	return cmp.Or(err, archive.Close())
}

// TestMemoryIsAsEstimated compares the peak memory of runs, beyond a tiny run's, with their
// estimates.
func TestMemoryIsAsEstimated(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("the peak of a process is known on Linux only")
	}
	testenv.NeedsAll(t, "runs with hundreds of megabytes")
	dir := t.TempDir()
	for name, n := range map[string][2]int{"tiny": {200, 20}, "small": {2000, 200}, "medium": {2000, 200}, "large": {20000, 4000}} {
		if err := writeArrays(filepath.Join(dir, name+".npz"), n[0], n[1], 28, 10); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeImages(filepath.Join(dir, "images"), 4, 40); err != nil {
		t.Fatal(err)
	}
	const tiny = "fit --method sgld --device cpu --data tiny.npz --model mlp-2 --epochs 2 --burn-in 1 --samples 2 --folder runs/tiny"
	_, baseline := peakOf(t, dir, strings.Fields(tiny)...)
	t.Logf("a tiny run takes %.0f MB", baseline/1e6)
	for _, arguments := range []string{
		"--data large.npz --model mlp-400-400 --method sgld --epochs 1 --burn-in 0 --samples 4 --batch 1000 --chains 4",
		"--data medium.npz --model cnn --method sgld --epochs 1 --burn-in 0 --samples 2 --batch 1000",
		"--data small.npz --model mlp-2000-3000 --method sgld --epochs 1 --burn-in 0 --samples 2 --batch 500",
		"--data small.npz --model mlp-1000-1000 --method psgld --epochs 2 --burn-in 1 --samples 4 --batch 500 --chains 4",
		"--data small.npz --model mlp-1000 --method hmc --epochs 60 --burn-in 30 --samples 5",
		"--data small.npz --model lenet --method swag --epochs 4 --samples 2 --batch 20 --chains 2",
		"--data small.npz --model mlp-2000-1000 --method laplace --epochs 1 --samples 2 --batch 100",
		"--data images --size 128 --model cnn --method sgld --epochs 1 --burn-in 0 --samples 1 --batch 100",
		"--data images --size 128 --model lenet-small --method sgld --epochs 1 --burn-in 0 --samples 1 --batch 100 --chains 4",
		"--data images --size 128 --model cnn --method sgld --epochs 1 --burn-in 0 --samples 1 --batch 50",
		"--data images --size 128 --model cnn --method sgld --epochs 1 --burn-in 0 --samples 1 --batch 50 --test 0.2 --validation 0.2", // a self-test
	} {
		t.Run(arguments, func(t *testing.T) {
			all := append([]string{"fit", "--device", "cpu"}, strings.Fields(arguments)...)
			if !strings.Contains(arguments, "--validation") {
				all = append(all, "--validation", "0")
			}
			stdout, _ := peakOf(t, dir, append(all, "--estimate")...)
			estimate := estimateOf(t, stdout)
			measure := func() float64 {
				_, peak := peakOf(t, dir, append(all, "--folder", filepath.Join(t.TempDir(), "run"))...)
				ratio := (peak - baseline) / estimate
				t.Logf("measured %.0f MB, estimated %.0f MB: %.2f", (peak-baseline)/1e6, estimate/1e6, ratio)
				return ratio
			}
			ratio := measure()
			if ratio > 1.3 { // on a busy machine, the garbage collector may have been late once
				ratio = min(ratio, measure())
			}
			if ratio < 0.7 || ratio > 1.3 {
				t.Errorf("the peak is %.2f of the estimate:\n%s", ratio, stdout)
			}
		})
	}
}
