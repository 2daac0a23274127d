package kernel

import (
	"fmt"
	"testing"
)

// measure runs all tiles of a plan on one thread and reports its speed.
func measure[T Float](b *testing.B, p Routine, err error, flops float64) {
	if err != nil {
		b.Fatal(err)
	}
	o := operands[T](&p)
	b.ReportAllocs()
	for b.Loop() {
		for phase, tiles := range p.Phases {
			for tile := range tiles {
				Run(&p, phase, tile, o)
			}
		}
	}
	b.ReportMetric(flops*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}

// BenchmarkTile measures a full register tile whose factors are in the first-level cache, an upper
// bound for the other benchmarks.
func BenchmarkTile(b *testing.B) {
	x := make([]float32, microRows*maxDepth)
	panel := make([]float32, panelColumns*maxDepth)
	c := make([]float32, microRows*panelColumns)
	for b.Loop() {
		multiply(microRows, maxDepth, leftFactor[float32]{data: x, rowStride: maxDepth, depthStride: 1}, panel, c, panelColumns, nil, 0)
	}
	b.ReportMetric(2*float64(microRows*panelColumns*maxDepth)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}

func BenchmarkGemm(b *testing.B) {
	for _, c := range []struct {
		name string
		g    Gemm
	}{
		{"512x512x512", Gemm{M: 512, N: 512, K: 512}},
		{"1024x1024x1024", Gemm{M: 1024, N: 1024, K: 1024}},
		{"512x512x512_at", Gemm{M: 512, N: 512, K: 512, TransposeA: true}},
		{"512x512x512_bt", Gemm{M: 512, N: 512, K: 512, TransposeB: true}},
		{"dense_3136_256", Gemm{M: 100, N: 256, K: 3136, TransposeB: true, Bias: BiasColumn, ReLU: true}},
		{"dense_3136_256_dx", Gemm{M: 100, N: 3136, K: 256}},
		{"dense_3136_256_dw", Gemm{M: 256, N: 3136, K: 100, TransposeA: true}},
		{"dense_784_400", Gemm{M: 100, N: 400, K: 784, TransposeB: true, Bias: BiasColumn, ReLU: true}},
		{"dense_784_400_dw", Gemm{M: 400, N: 784, K: 100, TransposeA: true}},
		{"dense_400_400_dx", Gemm{M: 100, N: 400, K: 400}},
		{"dense_320_50", Gemm{M: 100, N: 50, K: 320, TransposeB: true, Bias: BiasColumn}},
		{"dense_320_50_dx", Gemm{M: 100, N: 320, K: 50}},
		{"dense_320_50_dw", Gemm{M: 50, N: 320, K: 100, TransposeA: true}},
		{"dense_256_10", Gemm{M: 100, N: 10, K: 256, TransposeB: true, Bias: BiasColumn}},
		{"dense_256_10_dx", Gemm{M: 100, N: 256, K: 10}},
		{"dense_256_10_dw", Gemm{M: 10, N: 256, K: 100, TransposeA: true}},
	} {
		b.Run(c.name, func(b *testing.B) {
			p, err := c.g.Plan()
			measure[float32](b, p, err, 2*float64(c.g.M)*float64(c.g.N)*float64(c.g.K))
		})
	}
}

func BenchmarkConv2D(b *testing.B) {
	square := func(c, size, k, pad int) Conv2D {
		return Conv2D{B: 100, C: c, H: size, W: size, K: k, R: 5, S: 5, PadH: pad, PadW: pad,
			StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1}
	}
	residual := func(c, size, k, taps, stride int) Conv2D {
		return Conv2D{B: 100, C: c, H: size, W: size, K: k, R: taps, S: taps, PadH: taps / 2, PadW: taps / 2,
			StrideH: stride, StrideW: stride, DilationH: 1, DilationW: 1}
	}
	for _, s := range []struct {
		name string
		c    Conv2D
	}{
		{"64_64_14x14", square(64, 14, 64, 2)},
		{"1_64_28x28", square(1, 28, 64, 2)},
		{"1_10_28x28", square(1, 28, 10, 0)},
		{"1_20_28x28", square(1, 28, 20, 0)},
		{"10_20_12x12", square(10, 12, 20, 0)},
		{"20_50_12x12", square(20, 12, 50, 0)},
		{"3_16_32x32", residual(3, 32, 16, 3, 1)},
		{"16_16_32x32", residual(16, 32, 16, 3, 1)},
		{"16_32_32x32_by_2", residual(16, 32, 32, 3, 2)},
		{"16_32_32x32_1x1_by_2", residual(16, 32, 32, 1, 2)},
		{"32_32_16x16", residual(32, 16, 32, 3, 1)},
		{"32_64_16x16_by_2", residual(32, 16, 64, 3, 2)},
		{"32_64_16x16_1x1_by_2", residual(32, 16, 64, 1, 2)},
		{"64_64_8x8", residual(64, 8, 64, 3, 1)},
	} {
		c := s.c
		flops := 2 * float64(c.sizeY()) * float64(c.C*c.R*c.S)
		b.Run(s.name+"/forward", func(b *testing.B) {
			c := c
			c.Bias, c.ReLU = true, true
			p, err := c.Forward()
			measure[float32](b, p, err, flops)
		})
		b.Run(s.name+"/input", func(b *testing.B) {
			p, err := c.BackwardInput()
			measure[float32](b, p, err, flops)
		})
		b.Run(s.name+"/filter", func(b *testing.B) {
			p, err := c.BackwardFilter()
			measure[float32](b, p, err, flops)
		})
	}
}

func BenchmarkPortable(b *testing.B) {
	g := Gemm{M: 128, N: 128, K: 128}
	flops := 2 * float64(g.M*g.N*g.K)
	use(b, portableGo)
	p, err := g.Plan()
	b.Run("float32", func(b *testing.B) { measure[float32](b, p, err, flops) })
	b.Run("float64", func(b *testing.B) { measure[float64](b, p, err, flops) })
}

func BenchmarkPool2D(b *testing.B) {
	q := Pool2D{B: 100, C: 64, H: 28, W: 28, R: 2, S: 2, StrideH: 2, StrideW: 2}
	overlapping := q
	overlapping.R, overlapping.S, overlapping.PadH, overlapping.PadW = 3, 3, 1, 1
	for _, s := range []struct {
		name string
		plan func() (Routine, error)
	}{
		{"max_2x2/forward", q.MaxForward}, {"max_2x2/backward", q.MaxBackward},
		{"max_3x3/forward", overlapping.MaxForward}, {"max_3x3/backward", overlapping.MaxBackward},
		{"average_2x2/forward", q.AverageForward}, {"average_2x2/backward", q.AverageBackward},
	} {
		b.Run(s.name, func(b *testing.B) {
			p, err := s.plan()
			measure[float32](b, p, err, float64(q.B*q.C*q.H*q.W))
		})
	}
}

// The convolutions of MobileNetV2 at 224 x 224, one image.
func BenchmarkMobile(b *testing.B) {
	plain := Conv2D{B: 1, R: 1, S: 1, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1}
	for _, size := range [][3]int{
		{32, 16, 112}, {16, 96, 112}, {96, 24, 56}, {24, 144, 56}, {144, 32, 28}, {32, 192, 28}, {384, 64, 14}, {64, 384, 14}, {576, 96, 14},
		{960, 160, 7}, {320, 1280, 7},
	} {
		c := plain
		c.C, c.K, c.H, c.W = size[0], size[1], size[2], size[2]
		benchmarkDirections(b, fmt.Sprintf("pointwise_%d_%d_%d", c.C, c.K, c.H), c.Forward, c.BackwardInput, c.BackwardFilter, 2*float64(c.sizeY())*float64(c.C))
	}
	for _, size := range [][4]int{
		{32, 112, 3, 1}, {96, 112, 3, 2}, {144, 56, 3, 1}, {144, 56, 5, 2}, {192, 28, 3, 1}, {240, 28, 5, 1}, {576, 14, 3, 1}, {672, 14, 5, 1},
		{960, 7, 3, 1}, {1152, 7, 5, 1},
	} {
		c := plain
		c.C, c.K, c.H, c.W, c.R, c.S, c.StrideH, c.StrideW = size[0], size[0], size[1], size[1], size[2], size[2], size[3], size[3]
		c.PadH, c.PadW = c.R/2, c.R/2
		g := GroupedConv2D{c, c.C}
		benchmarkDirections(b, fmt.Sprintf("depthwise_%d_%d_%dx%d_by_%d", c.C, c.H, c.R, c.R, c.StrideH), g.Forward, g.BackwardInput, g.BackwardFilter,
			2*float64(c.sizeY())*float64(c.R*c.S))
	}
	stem := plain
	stem.C, stem.K, stem.H, stem.W, stem.R, stem.S, stem.StrideH, stem.StrideW, stem.PadH, stem.PadW = 3, 32, 224, 224, 3, 3, 2, 2, 1, 1
	benchmarkDirections(b, "stem", stem.Forward, stem.BackwardInput, stem.BackwardFilter, 2*float64(stem.sizeY())*27)
}

func benchmarkDirections(b *testing.B, name string, forward, input, filter func() (Routine, error), flops float64) {
	for direction, prepare := range map[string]func() (Routine, error){"forward": forward, "input": input, "filter": filter} {
		b.Run(name+"/"+direction, func(b *testing.B) {
			p, err := prepare()
			measure[float32](b, p, err, flops)
		})
	}
}
