package kernel

// rule is the computation that a pass performs on each element of its slices. Package rules of the
// generator defines them for all instruction sets.
//
// A new pass needs four things: a constant here, the function with the loop in Go (in
// elementwise.go, update_sampler.go or a file like these), its rule in generate/rules, and its case
// in pass_rules_amd64.go. Then run go generate, which also writes arm64's dispatch. The tests
// compare the bits of assembly and loop.
type rule uint8

const (
	ruleAdd rule = iota
	ruleSubtract
	ruleMultiply
	ruleMultiplyPlane
	ruleAddPlane
	ruleDivide
	ruleRaise
	rulePassAbove
	ruleClip
	rulePassWithin
	ruleHardSwish
	ruleHardSwishGradient
	ruleKeep
	ruleSum
	ruleDot
	ruleDecayedGradient
	ruleLaplaceGradient
	ruleStudentGradient
	ruleSGLD
	ruleDecayedSGLD
	rulePSGLD
	ruleSGHMC
	ruleBAOAB
	ruleDrift
	ruleSGD
	ruleMomentum
	ruleNesterov
	ruleAdagrad
	ruleRMSProp
	ruleAdadelta
	ruleAdam
	ruleExpm1
	ruleSigmoid
	ruleSigmoidGradient
	ruleSiLU
	ruleSiLUGradient
	ruleTanh
	ruleErf
	ruleGELU
	ruleTanhGradient
	ruleELU
	ruleSoftplus
	ruleSoftplusGradient
	ruleLog
	ruleWideSum
	ruleWideDifference
	ruleWideSquares
	ruleWideProducts
	ruleWideAffine
	ruleWideAffineRow
	ruleWideCombine
)

// A pass goes once over slices of equal length, element by element. Assembly processes the largest
// multiple of passLanes elements and a loop in Go the rest; without assembly the loop processes
// all. Both perform the same operations in the same order, each rounded, so the bits are the same.
// Conversions such as T(rate * g) in these loops are not redundant: they keep the compiler from
// fusing the product with a following sum, which would round differently.
const (
	passLanes        = 16
	passSlices       = 6
	passCoefficients = 24
)

// coefficients are the scalars of a rule.
type coefficients[T Float] [passCoefficients]T

// sums are the partial sums of a statistic: element i of a pass is added to sum i % passLanes,
// whatever the width of the registers, so that all instruction sets add in the same order.
type sums[T Float] [passLanes]T

func (s *sums[T]) add(i int, v T) { s[i%passLanes] += v }

// total adds the partial sums pairwise: 16 to 8, to 4, to 2, to 1.
func (s *sums[T]) total() float64 {
	var a [passLanes / 2]T
	for i := range a {
		a[i] = s[i] + s[i+passLanes/2]
	}
	b0, b1, b2, b3 := a[0]+a[4], a[1]+a[5], a[2]+a[6], a[3]+a[7]
	return float64((b0 + b2) + (b1 + b3))
}

// Affine are the coefficients of WideAffinePlanes, in the order in which the assembly reads them.
type Affine struct{ Mean, Scale, Shift float64 }

// Combination are the coefficients of WideCombinePlanes, in the order in which the assembly reads
// them.
type Combination struct{ Mean, B, A, C float64 }
