package kernel

import (
	"fmt"
	"slices"
	"testing"
)

func naiveGemm[T Float](g Gemm, in inputs[T]) []sum {
	out := make([]sum, g.M*g.N)
	for i := range g.M {
		for j := range g.N {
			s := &out[i*g.N+j]
			for k := range g.K {
				a, b := i*g.K+k, k*g.N+j
				if g.TransposeA {
					a = k*g.M + i
				}
				if g.TransposeB {
					b = j*g.K + k
				}
				s.add(float64(in.a[a]) * float64(in.b[b]))
			}
			if g.Accumulate {
				s.add(float64(in.out[i*g.N+j]))
			}
			switch g.Bias {
			case BiasRow:
				s.add(float64(in.bias[i]))
			case BiasColumn:
				s.add(float64(in.bias[j]))
			}
			if g.ReLU {
				s.value = max(s.value, 0)
			}
		}
	}
	return out
}

func checkGemm[T Float](t *testing.T, g Gemm) {
	t.Helper()
	p, err := g.Plan()
	if err != nil {
		t.Fatal(err)
	}
	check(t, p, g.Accumulate, func(in inputs[T]) []sum { return naiveGemm(g, in) })
}

func TestGemm(t *testing.T) {
	sizes := [][3]int{
		{1, 1, 1}, {1, 31, 33}, {31, 1, 257}, {33, 257, 31}, {257, 33, 1}, {6, 16, 256},
		{1, 16, 5}, {3, 48, 300}, {20, 176, 33}, {42, 32, 520},
		{5, 15, 257}, {7, 17, 600}, {100, 10, 50}, {13, 64, 9}, {400, 48, 33}, {67, 65, 512}, {600, 70, 90},
	}
	onEachInstructionSet(t, func(t *testing.T) {
		for _, size := range sizes {
			for option := range 16 {
				g := Gemm{M: size[0], N: size[1], K: size[2],
					TransposeA: option&1 != 0, TransposeB: option&2 != 0, Accumulate: option&4 != 0, ReLU: option&8 != 0,
					Bias: BiasKind((option + size[2]) % 3)}
				t.Run(fmt.Sprintf("%+v", g), func(t *testing.T) {
					checkGemm[float32](t, g)
					if option < 8 {
						checkGemm[float64](t, g)
					}
					if option == 0 {
						checkGemm[named](t, g)
					}
				})
			}
		}
	})
}

// TestGemmInPlace checks that a product has the same bits whether or not its right factor is
// packed.
func TestGemmInPlace(t *testing.T) {
	onEachInstructionSet(t, func(t *testing.T) {
		for rows := 1; rows <= inPlaceTiles*microRows; rows++ {
			g := Gemm{M: rows, N: 160, K: 270, TransposeA: true}
			inPlace, err := g.Plan()
			if err != nil || !inPlace.plan.(*gemmPlan).inPlace {
				t.Fatalf("%d rows: the right factor is packed (%v)", rows, err)
			}
			in := random[float32](newRandom(), &inPlace)
			g.PackB = true
			packed, err := g.Plan()
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(execute(t, &inPlace, in, false, nil), execute(t, &packed, in, false, nil)) {
				t.Errorf("%d rows: the products differ", rows)
			}
		}
	})
}

func TestGemmValidate(t *testing.T) {
	for _, g := range []Gemm{{}, {M: 1, N: 1, K: -1}, {M: 1, N: 1, K: 1, Bias: 3}, {M: 1 << 20, N: 1, K: 1 << 20}} {
		if _, err := g.Plan(); err == nil {
			t.Errorf("%+v: no error", g)
		}
	}
}
