package kernel

// rule is what a pass does with each element of its slices.
type rule uint8

const (
	ruleAdd rule = iota
	ruleSubtract
	ruleMultiply
	ruleDivide
	ruleRaise
	rulePassAbove
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
	ruleTanhGradient
	ruleELU
	ruleWideSum
	ruleWideDifference
	ruleWideSquares
	ruleWideProducts
	ruleWideAffine
	ruleWideCombine
)

// A pass goes once over slices of equal length, element by element. The assembly does the largest
// multiple of passLanes, a loop in Go the rest; elsewhere the loop does all. Both perform the same
// operations in the same order, each rounded, so that the bits are the same.
const (
	passLanes        = 16
	passSlices       = 6
	passCoefficients = 16
)

// coefficients are a rule's scalars.
type coefficients[T Float] [passCoefficients]T

// sums are the partial sums of a statistic: element i of a pass adds to sum i % passLanes.
type sums[T Float] [passLanes]T

func (s *sums[T]) add(i int, v T) { s[i%passLanes] += v }

// total adds neighbours at falling distances.
func (s *sums[T]) total() float64 {
	var a [passLanes / 2]T
	for i := range a {
		a[i] = s[i] + s[i+passLanes/2]
	}
	b0, b1, b2, b3 := a[0]+a[4], a[1]+a[5], a[2]+a[6], a[3]+a[7]
	return float64((b0 + b2) + (b1 + b3))
}
