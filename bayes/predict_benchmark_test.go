package bayes

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/pollen-ml/pollen/tensor"
)

// BenchmarkPredictor times predictions of the runs in the directories of POLLEN_BENCHMARK_RUNS, on
// one thread, without their detectors, for one image and for many. The figures in
// docs/distillation.md are of a run and of the one distilled from it.
func BenchmarkPredictor(b *testing.B) {
	dirs := os.Getenv("POLLEN_BENCHMARK_RUNS")
	if dirs == "" {
		b.Skip("POLLEN_BENCHMARK_RUNS has no directories of runs")
	}
	host := tensor.NewHost(1)
	defer host.Close()
	for _, batch := range []int{1, 100} {
		for i, dir := range filepath.SplitList(dirs) {
			run, err := Open(dir, WithDevice(host))
			must(b, err)
			run.undetected = true
			p, err := run.Predictor(batch)
			must(b, err)
			images := 1
			if batch > 1 {
				images = p.PartSize()
			}
			pixels := make([]byte, images*run.manifest.Data.Channels*run.manifest.Data.Height*run.manifest.Data.Width)
			for i := range pixels {
				pixels[i] = byte(i * i % 251)
			}
			b.Run("run="+strconv.Itoa(i+1)+"/images="+strconv.Itoa(images), func(b *testing.B) {
				for b.Loop() {
					_, err := p.Answer(context.Background(), pixels)
					must(b, err)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/1e3/float64(b.N*images), "µs/image")
			})
			must(b, p.Close())
		}
	}
}
