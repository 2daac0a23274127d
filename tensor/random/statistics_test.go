package random

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

const sampleSize = 1 << 20

// bound is a score that a true hypothesis exceeds once in 150 000; the seeds are fixed, so the
// tests are not flaky.
const bound = 4.5

func sample(a Address) []float64 {
	z := make([]float64, sampleSize)
	Normals(z, 0, a)
	return z
}

func checkScore(t *testing.T, name string, score float64) {
	t.Helper()
	if !(math.Abs(score) < bound) {
		t.Errorf("%s: %.2f standard errors from what is expected, want less than %v", name, score, bound)
	}
}

// TestNormalMoments: the variance of the mean of z^k is (E z^2k - (E z^k)^2) / n.
func TestNormalMoments(t *testing.T) {
	moments := []float64{1, 0, 1, 0, 3, 0, 15, 0, 105}
	for seed := range uint64(4) {
		z := sample(Address{Seed: seed})
		for k := 1; k <= 4; k++ {
			var sum float64
			for _, x := range z {
				sum += math.Pow(x, float64(k))
			}
			variance := moments[2*k] - moments[k]*moments[k]
			score := (sum/sampleSize - moments[k]) / math.Sqrt(variance/sampleSize)
			t.Logf("seed %d, moment %d: score %.2f", seed, k, score)
			checkScore(t, "moment", score)
		}
	}
}

// TestKolmogorovSmirnov: sqrt(n) D exceeds 2.2 with probability 1.3e-4.
func TestKolmogorovSmirnov(t *testing.T) {
	normals := sample(Address{Seed: 100, Stream: 1})
	uniforms := make([]float64, sampleSize)
	Uniforms(uniforms, 0, Address{Seed: 100, Stream: 2})
	for _, c := range []struct {
		name         string
		x            []float64
		distribution func(float64) float64
	}{
		{"normals", normals, distuv.UnitNormal.CDF},
		{"uniforms", uniforms, func(x float64) float64 { return x }},
	} {
		slices.Sort(c.x)
		var distance float64
		for i, x := range c.x {
			p := c.distribution(x)
			distance = max(distance, p-float64(i)/sampleSize, float64(i+1)/sampleSize-p)
		}
		score := distance * math.Sqrt(sampleSize)
		t.Logf("%s: sqrt(n) D = %.3f", c.name, score)
		if score > 2.2 || score < 0.3 {
			t.Errorf("%s: sqrt(n) D = %.3f, want 0.3 to 2.2", c.name, score)
		}
	}
}

// TestTails counts the normals beyond 1 to 5 standard deviations, on both sides, among 2^24.
func TestTails(t *testing.T) {
	const blocks = 1 << 16
	var counts [2][6]int
	var block [BlockSize]float32
	for i := range blocks {
		NormalBlock(Address{Seed: 200}, i, BlockSize, &block)
		for _, z := range block {
			side := int(math.Float32bits(z) >> 31)
			for k := min(int(math.Abs(float64(z))), 5); k > 0; k-- {
				counts[side][k]++
			}
		}
	}
	for side := range counts {
		for k := 1; k <= 5; k++ {
			p := distuv.UnitNormal.Survival(float64(k))
			expected := p * blocks * BlockSize
			score := (float64(counts[side][k]) - expected) / math.Sqrt(expected*(1-p))
			t.Logf("side %d, beyond %d: %d, expected %.1f", side, k, counts[side][k], expected)
			checkScore(t, "tail", score)
		}
	}
}

// TestIndependence checks the correlations, of values and of squares, between a stream and a
// shifted copy of it, and between streams whose addresses differ in one field.
func TestIndependence(t *testing.T) {
	base := Address{Seed: 300, Chain: 1, Step: 1000, Stream: 7}
	x := sample(base)
	check := func(name string, x, y []float64) {
		checkScore(t, name, stat.Correlation(x, y, nil)*math.Sqrt(float64(len(x))))
		checkScore(t, name+", squares", stat.Correlation(squares(x), squares(y), nil)*math.Sqrt(float64(len(x))))
	}
	for _, lag := range []int{1, 2, 3, 4, 5, 8, 16, 31, 32, 64, 256, 1024, 65536} {
		check("lag", x[lag:], x[:sampleSize-lag])
	}
	for name, change := range map[string]func(a *Address){
		"seed":      func(a *Address) { a.Seed++ },
		"high seed": func(a *Address) { a.Seed ^= 1 << 63 },
		"chain":     func(a *Address) { a.Chain++ },
		"step":      func(a *Address) { a.Step++ },
		"high step": func(a *Address) { a.Step ^= 1 << 47 },
		"stream":    func(a *Address) { a.Stream++ },
	} {
		other := base
		change(&other)
		check(name, x, sample(other))
	}
	// One element over many steps, chains and streams is a normal sample, too, as an update sees
	// it.
	const n = 1 << 16
	for name, address := range map[string]func(i int) Address{
		"steps":   func(i int) Address { return Address{Seed: 301, Step: uint64(i)} },
		"chains":  func(i int) Address { return Address{Seed: 301, Chain: uint32(i)} },
		"streams": func(i int) Address { return Address{Seed: 301, Stream: uint16(i % (n - 1))} },
	} {
		y := make([]float64, n)
		for i := range y {
			Normals(y[i:i+1], 5, address(i))
		}
		mean, std := stat.MeanStdDev(y, nil)
		checkScore(t, "mean over "+name, mean*math.Sqrt(n))
		checkScore(t, "variance over "+name, (std*std-1)*math.Sqrt(n/2))
		check("lag over "+name, y[1:], y[:n-1])
	}
}

func squares(x []float64) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = v * v
	}
	return y
}
