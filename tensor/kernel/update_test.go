package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
)

// updates are the passes, each with the formula for one element, which changes x as the pass does
// and returns its term of the statistic.
var updates = []struct {
	rule    rule
	slices  int // without the noise
	noise   bool
	formula func(x []float64, z float64) (statistic float64)
}{
	{ruleDot, 2, false, func(x []float64, _ float64) float64 { return x[0] * x[1] }},
	{ruleDecayedGradient, 3, false, func(x []float64, _ float64) float64 {
		x[0] = x[2] + 0.25*x[1]
		return x[0] * x[1]
	}},
	{ruleLaplaceGradient, 3, false, func(x []float64, _ float64) float64 {
		x[0] = x[2]
		if x[1] > 0 {
			x[0] += 0.25
		} else if x[1] < 0 {
			x[0] -= 0.25
		}
		return x[0] * x[1]
	}},
	{ruleStudentGradient, 3, false, func(x []float64, _ float64) float64 {
		x[0] = x[2] + 0.25*x[1]/(0.5+x[1]*x[1])
		return x[0] * x[1]
	}},
	{ruleSGLD, 2, true, func(x []float64, z float64) float64 {
		x[0] += -0.25*x[1] + 0.5*z
		return 0
	}},
	{ruleDecayedSGLD, 2, true, func(x []float64, z float64) float64 {
		g := x[1] + 0.0625*x[0]
		statistic := x[0] * g
		x[0] += -0.25*g + 0.5*z
		return statistic
	}},
	{rulePSGLD, 3, true, func(x []float64, z float64) float64 {
		x[1] = 0.75*x[1] + 0.25*x[2]*x[2]
		g := 1 / (0.125 + math.Sqrt(x[1]))
		x[0] += -0.25*g*x[2] + 0.5*math.Sqrt(g)*z
		return 0
	}},
	{ruleSGHMC, 3, true, func(x []float64, z float64) float64 {
		x[1] = 0.75*x[1] - 0.25*x[2] + 0.5*z
		x[0] += x[1]
		return 0
	}},
	{ruleBAOAB, 3, true, func(x []float64, z float64) float64 {
		u := x[1] - 0.25*x[2]
		x[1] = 0.75*u + 0.5*z
		x[0] += 0.375 * (u + x[1])
		return 0
	}},
	{ruleDrift, 2, true, func(x []float64, z float64) float64 {
		u := x[1]
		x[1] = 0.75*u + 0.5*z
		x[0] += (u + x[1]) / 2
		return 0
	}},
	{ruleSGD, 2, false, optimizing(func(x []float64, g float64) { x[0] -= 0.25 * g })},
	{ruleMomentum, 3, false, optimizing(func(x []float64, g float64) {
		x[2] = 0.75*x[2] + 0.25*g
		x[0] -= x[2]
	})},
	{ruleNesterov, 3, false, optimizing(func(x []float64, g float64) {
		x[2] = 0.75*x[2] + 0.25*g
		x[0] -= 0.25*g + 0.75*x[2]
	})},
	{ruleAdagrad, 3, false, optimizing(func(x []float64, g float64) {
		x[2] += g * g
		x[0] -= 0.25 * g / (math.Sqrt(x[2]) + 0.125)
	})},
	{ruleRMSProp, 3, false, optimizing(func(x []float64, g float64) {
		x[2] = 0.75*x[2] + 0.25*g*g
		x[0] -= 0.25 * g / (math.Sqrt(x[2]) + 0.125)
	})},
	{ruleAdadelta, 4, false, optimizing(func(x []float64, g float64) {
		x[2] = 0.75*x[2] + 0.25*g*g
		d := math.Sqrt(x[3]+0.125) / math.Sqrt(x[2]+0.125) * g
		x[3] = 0.75*x[3] + 0.25*d*d
		x[0] -= d
	})},
	{ruleAdam, 4, false, optimizing(func(x []float64, g float64) {
		x[2] = 0.75*x[2] + 0.25*g
		x[3] = 0.875*x[3] + 0.125*g*g
		x[0] -= 0.25 * (1.5*x[2]/(math.Sqrt(1.25*x[3])+0.125) + 0.0625*x[0])
	})},
}

// optimizing adds weight decay and the statistic to an optimizer's formula.
func optimizing(move func(x []float64, g float64)) func(x []float64, z float64) float64 {
	return func(x []float64, _ float64) float64 {
		g := x[1] + 0.0625*x[0]
		statistic := x[0] * g
		move(x, g)
		return statistic
	}
}

// update runs a pass with the formulas' scalars.
func update[T Float](r rule, x [][]T, z []float32) float64 {
	switch r {
	case ruleDot:
		return Dot(x[0], x[1])
	case ruleDecayedGradient:
		return DecayedGradient(x[0], x[1], x[2], 0.25)
	case ruleLaplaceGradient:
		return LaplaceGradient(x[0], x[1], x[2], 0.25)
	case ruleStudentGradient:
		return StudentGradient(x[0], x[1], x[2], 0.25, 0.5)
	case ruleSGLD:
		SGLD(x[0], x[1], z, 0.25, 0.5)
	case ruleDecayedSGLD:
		return DecayedSGLD(x[0], x[1], z, 0.0625, 0.25, 0.5)
	case rulePSGLD:
		PSGLD(x[0], x[1], x[2], z, 0.75, 0.125, 0.25, 0.5)
	case ruleSGHMC:
		SGHMC(x[0], x[1], x[2], z, 0.75, 0.25, 0.5)
	case ruleBAOAB:
		BAOAB(x[0], x[1], x[2], z, 0.75, 0.25, 0.5, 0.375)
	case ruleDrift:
		Drift(x[0], x[1], z, 0.75, 0.5)
	case ruleSGD:
		return SGD(x[0], x[1], 0.0625, 0.25)
	case ruleMomentum:
		return Momentum(x[0], x[1], x[2], 0.0625, 0.75, 0.25)
	case ruleNesterov:
		return Nesterov(x[0], x[1], x[2], 0.0625, 0.75, 0.25)
	case ruleAdagrad:
		return Adagrad(x[0], x[1], x[2], 0.0625, 0.25, 0.125)
	case ruleRMSProp:
		return RMSProp(x[0], x[1], x[2], 0.0625, 0.75, 0.25, 0.125)
	case ruleAdadelta:
		return Adadelta(x[0], x[1], x[2], x[3], 0.0625, 0.75, 0.125)
	case ruleAdam:
		return Adam(x[0], x[1], x[2], x[3], AdamStep[T]{
			Decay: 0.0625, DecayInStep: 0.0625, Beta1: 0.75, Beta2: 0.875, Correct1: 1.5, Correct2: 1.25, Rate: 0.25, Epsilon: 0.125,
		})
	}
	return 0
}

// updateOperands returns guarded slices of normals, with some zeros and no negative second moments.
func updateOperands[T Float](r *rand.Rand, slices, n int) (all, x [][]T) {
	for s := range slices {
		guarded, inner := guarded[T](n)
		for i := range inner {
			inner[i] = T(float32(r.NormFloat64()))
			if s > 1 || slices == 3 && s == 1 {
				inner[i] = T(math.Abs(float64(inner[i])))
			}
			if i%13 == 5 {
				inner[i] = 0
			}
		}
		all, x = append(all, guarded), append(x, inner)
	}
	return all, x
}

func TestUpdates(t *testing.T) {
	onEachInstructionSet(t, func(t *testing.T) {
		checkUpdates[float64](t, 1e-13)
		checkUpdates[float32](t, 4e-6)
		checkUpdates[named](t, 4e-6)
	})
}

func checkUpdates[T Float](t *testing.T, tolerance float64) {
	t.Helper()
	for _, u := range updates {
		for _, n := range []int{1, 15, 16, 31, 33, 257, 1000} {
			r := rand.New(rand.NewPCG(uint64(n), uint64(u.rule)))
			all, x := updateOperands[T](r, u.slices, n)
			z := normals[float32](r, n)
			want := make([][]float64, len(x))
			for s := range x {
				for _, v := range x[s] {
					want[s] = append(want[s], float64(v))
				}
			}
			statistic, magnitude := 0.0, 0.0
			for i := range n {
				element := make([]float64, len(x))
				for s := range element {
					element[s] = want[s][i]
				}
				share := u.formula(element, float64(z[i]))
				statistic, magnitude = statistic+share, magnitude+math.Abs(share)
				for s := range element {
					want[s][i] = element[s]
				}
			}
			if got := update(u.rule, x, z); !(math.Abs(got-statistic) <= tolerance*(1+magnitude)) {
				t.Errorf("rule %d, %d elements: statistic %g, want %g", u.rule, n, got, statistic)
			}
			for s := range x {
				if !intact(all[s]) {
					t.Fatalf("rule %d, %d elements: slice %d is written out of bounds", u.rule, n, s)
				}
				for i, v := range x[s] {
					if !(math.Abs(float64(v)-want[s][i]) <= tolerance*(1+math.Abs(want[s][i]))) {
						t.Fatalf("rule %d, %d elements: element %d of slice %d is %g, want %g", u.rule, n, i, s, v, want[s][i])
					}
				}
			}
		}
	}
}

// The assembly gives the same bits as portable Go.
func TestUpdateBits(t *testing.T) {
	const n = 4096 + 7
	want, statistics := make(map[rule][][]float32), make(map[rule]float64)
	onEachInstructionSet(t, func(t *testing.T) {
		for _, u := range updates {
			r := rand.New(rand.NewPCG(7, uint64(u.rule)))
			_, got := updateOperands[float32](r, u.slices, n)
			statistic := update(u.rule, got, normals[float32](r, n))
			if isa == portableGo {
				want[u.rule], statistics[u.rule] = got, statistic
				continue
			}
			if statistic != statistics[u.rule] {
				t.Errorf("rule %d: statistic %g, in portable Go %g", u.rule, statistic, statistics[u.rule])
			}
			for s := range got {
				for i, v := range got[s] {
					if math.Float32bits(v) != math.Float32bits(want[u.rule][s][i]) {
						t.Fatalf("rule %d: element %d of slice %d is %g, in portable Go %g", u.rule, i, s, v, want[u.rule][s][i])
					}
				}
			}
		}
	})
}

func TestUpdatesDoNotAllocate(t *testing.T) {
	for _, u := range updates {
		r := rand.New(rand.NewPCG(1, 2))
		_, x := updateOperands[float32](r, u.slices, 100)
		z := normals[float32](r, 100)
		if n := testing.AllocsPerRun(2, func() { update(u.rule, x, z) }); n != 0 {
			t.Errorf("rule %d: %g allocations", u.rule, n)
		}
	}
}
