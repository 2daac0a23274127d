package known

import (
	"math"
	"testing"
)

// reducedRank is the theorem of Aoyagi and Watanabe (2005) for a map of M inputs to N outputs of
// rank r, learnt with H hidden units, in its four cases.
func reducedRank(r, M, H, N int) (lambda float64, multiplicity int) {
	switch {
	case M+H < N+r:
		return float64(H*M-H*r+N*r) / 2, 1
	case N+H < M+r:
		return float64(H*N-H*r+M*r) / 2, 1
	case M+N < H+r:
		return float64(M*N) / 2, 1
	}
	numerator := -(H+r)*(H+r) - M*M - N*N + 2*(H+r)*M + 2*(H+r)*N + 2*M*N
	if (M+H+N+r)%2 == 1 {
		return float64(numerator+1) / 8, 2
	}
	return float64(numerator) / 8, 1
}

// TestCoefficientByHand has cases worked by hand.
func TestCoefficientByHand(t *testing.T) {
	for _, c := range []struct {
		rank         int
		widths       []int
		lambda       float64
		multiplicity int
	}{
		// (ab)^2 has lambda 1/2 with multiplicity 2, and (abc)^2 with 3: each factor's exponent is
		// 2.
		{0, []int{1, 1, 1}, 0.5, 2},
		{0, []int{1, 1, 1, 1}, 0.5, 3},
		// A regular model of one matrix, and one that is regular at full rank: ab = 1 is a curve in
		// the plane, of codimension 1.
		{2, []int{3, 5}, 7.5, 1},
		{1, []int{1, 1, 1}, 0.5, 1},
		// |u|^2 b^2 for a vector u of three: blowing up the origin of u gives min(3, 1)/2.
		{0, []int{3, 1, 1}, 0.5, 1},
		// |u v'|^2 = |u|^2 |v|^2 for vectors of two: min(2, 2)/2, twice.
		{0, []int{2, 1, 2}, 1, 2},
		// Two 2x2 matrices with the product 0: pairs of rank one each have codimension 3.
		{0, []int{2, 2, 2}, 1.5, 1},
		// Full rank: the product of invertible matrices covers all maps, 9/2.
		{3, []int{3, 3, 3}, 4.5, 1},
	} {
		lambda, multiplicity, err := Coefficient(c.rank, c.widths...)
		if err != nil || lambda != c.lambda || multiplicity != c.multiplicity {
			t.Errorf("Coefficient(%d, %v) = %v, %d, %v, want %v, %d", c.rank, c.widths, lambda, multiplicity, err, c.lambda, c.multiplicity)
		}
	}
}

// TestCoefficientIsReducedRank compares two matrices with the theorem of 2005, for all small widths
// and ranks.
func TestCoefficientIsReducedRank(t *testing.T) {
	const most = 9
	for M := 1; M <= most; M++ {
		for H := 1; H <= most; H++ {
			for N := 1; N <= most; N++ {
				for r := 0; r <= min(M, H, N); r++ {
					lambda, multiplicity, err := Coefficient(r, M, H, N)
					want, times := reducedRank(r, M, H, N)
					if err != nil || math.Abs(lambda-want) > 1e-12 || multiplicity != times {
						t.Fatalf("Coefficient(%d, %d, %d, %d) = %v, %d, %v, want %v, %d", r, M, H, N, lambda, multiplicity, err, want, times)
					}
				}
			}
		}
	}
}

// TestCoefficientBounds tests what holds for any network: of the order of widths only the ends
// matter, a coefficient is at most half the number of parameters and at most the coefficient of the
// regular model of one matrix, and wide hidden layers reach the latter.
func TestCoefficientBounds(t *testing.T) {
	for a := 1; a <= 5; a++ {
		for b := 1; b <= 5; b++ {
			for c := 1; c <= 5; c++ {
				for d := 1; d <= 5; d++ {
					for r := 0; r <= min(a, b, c, d); r++ {
						lambda, _, err := Coefficient(r, a, b, c, d)
						if err != nil {
							t.Fatal(err)
						}
						other, _, _ := Coefficient(r, d, c, b, a)
						if lambda != other || lambda > float64(a*d)/2 || lambda > float64(a*b+b*c+c*d)/2 {
							t.Fatalf("Coefficient(%d, %d, %d, %d, %d) = %v, reversed %v", r, a, b, c, d, lambda, other)
						}
						if wide, _, _ := Coefficient(r, a, 40, 40, d); wide != float64(a*d)/2 {
							t.Fatalf("Coefficient(%d, %d, 40, 40, %d) = %v, want %v", r, a, d, wide, float64(a*d)/2)
						}
					}
				}
			}
		}
	}
}

func TestCoefficientErrors(t *testing.T) {
	for _, c := range []struct {
		rank   int
		widths []int
	}{{0, []int{3}}, {-1, []int{3, 3}}, {3, []int{2, 4}}, {0, []int{0, 3}}} {
		if _, _, err := Coefficient(c.rank, c.widths...); err == nil {
			t.Errorf("Coefficient(%d, %v): no error", c.rank, c.widths)
		}
	}
}
