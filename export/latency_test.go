package export

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/tensor"
)

// BenchmarkONNXRuntime compares the latency of single images in onnxruntime with the run's, with
// all outputs on both sides and one thread each, for the runs in the directories of
// POLLEN_BENCHMARK_RUNS. The sides alternate, and a figure is the median of their rounds.
func BenchmarkONNXRuntime(b *testing.B) {
	dirs, program := os.Getenv("POLLEN_BENCHMARK_RUNS"), os.Getenv(pythonVariable)
	if dirs == "" || program == "" {
		b.Skipf("POLLEN_BENCHMARK_RUNS has no directories of runs, or %s is not set", pythonVariable)
	}
	for _, dir := range filepath.SplitList(dirs) {
		b.Run(filepath.Base(dir), func(b *testing.B) { compareLatency(b, dir, program) })
	}
}

func compareLatency(b *testing.B, dir, program string) {
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	host := tensor.NewHost(1)
	defer host.Close()
	run, err := bayes.Open(dir, bayes.WithDevice(host))
	must(err)
	draws, err := run.Draws()
	must(err)
	file := filepath.Join(b.TempDir(), "model.onnx")
	_, err = ONNX(b.Context(), run, file, ONNXOptions{Together: draws.Len()})
	must(err)
	d := run.Manifest().Data
	pixels := make([]byte, d.Channels*d.Height*d.Width)
	for i := range pixels {
		pixels[i] = byte(i * i % 251)
	}
	p, err := run.Predictor(1)
	must(err)
	defer p.Close()

	other := exec.Command(program, filepath.Join("testdata", "onnx_latency.py"), file)
	other.Stderr = os.Stderr
	requests, err := other.StdinPipe()
	must(err)
	out, err := other.StdoutPipe()
	must(err)
	must(other.Start())
	answers := bufio.NewReader(out)

	ours := func(n int) float64 {
		start := time.Now()
		for range n {
			binary.LittleEndian.PutUint64(pixels, binary.LittleEndian.Uint64(pixels)+1) // features are kept by image
			_, err := p.Answer(b.Context(), pixels)
			must(err)
		}
		return time.Since(start).Seconds()
	}
	theirs := func(n int) float64 {
		_, err := fmt.Fprintln(requests, n)
		must(err)
		line, err := answers.ReadString('\n')
		must(err)
		seconds, err := strconv.ParseFloat(strings.TrimSpace(line), 64)
		must(err)
		return seconds
	}
	n := max(1, int(0.2/(ours(1)+theirs(1))))
	var each [2][]float64
	for b.Loop() {
		for i, side := range []func(int) float64{ours, theirs} {
			each[i] = append(each[i], side(n)/float64(n)*1e6)
		}
	}
	must(requests.Close())
	must(other.Wait())
	var medians [2]float64
	for i, times := range each {
		slices.Sort(times)
		medians[i] = times[len(times)/2]
	}
	b.ReportMetric(medians[0], "µs")
	b.ReportMetric(medians[1], "onnxruntime-µs")
	b.ReportMetric(medians[1]/medians[0], "ratio")
}
