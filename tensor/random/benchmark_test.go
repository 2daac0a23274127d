package random

import "testing"

func perNormal(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/normal")
}

func BenchmarkNormals(b *testing.B) {
	for _, size := range []struct {
		name string
		n    int
	}{{"10", 10}, {"256", 256}, {"65536", 65536}} {
		dst := make([]float32, size.n)
		b.Run(size.name, func(b *testing.B) {
			for i := range b.N {
				Normals(dst, 0, Address{Step: uint64(i)})
			}
			perNormal(b, size.n)
		})
	}
}

func BenchmarkNormalBlock(b *testing.B) {
	var dst [BlockSize]float32
	for i := range b.N {
		NormalBlock(Address{Step: uint64(i)}, 0, BlockSize, &dst)
	}
	perNormal(b, BlockSize)
}

func BenchmarkNormalsPortable(b *testing.B) {
	var dst [BlockSize]float32
	for i := range b.N {
		normalsPortable(dst[:], uint32(i)*64, Address{})
	}
	perNormal(b, BlockSize)
}

func BenchmarkUniforms(b *testing.B) {
	dst := make([]float32, BlockSize)
	for i := range b.N {
		Uniforms(dst, 0, Address{Step: uint64(i)})
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/BlockSize, "ns/uniform")
}

func BenchmarkOrder(b *testing.B) {
	order := NewOrder(60000, 1, 0, 0)
	var sum uint64
	for i := range b.N {
		sum += order.At(uint64(i) % 60000)
	}
	if sum == 1 {
		b.Log(sum)
	}
}

func BenchmarkPermute(b *testing.B) {
	var sum uint64
	for i := range b.N {
		sum += Permute(uint64(i)%60000, 60000, 1, 0, 0)
	}
	if sum == 1 {
		b.Log(sum)
	}
}
