//go:build !purego

package kernel

import "unsafe"

// pass is what the assembly of a rule reads; it writes the sums. Coefficients and sums are float32, in wide rules float64.
type pass struct {
	slices             [passSlices]*float32
	count              int
	coefficients, sums unsafe.Pointer
}

// accelerate performs a rule on the first elements of the slices, noise last when there is any, and returns how many.
func accelerate[T Float](r rule, s *sums[T], c coefficients[T], noise []float32, slices ...[]T) int {
	n := len(slices[0]) &^ (passLanes - 1)
	if n == 0 || !fast[T]() {
		return 0
	}
	p := pass{count: n, coefficients: unsafe.Pointer(&c), sums: unsafe.Pointer(s)}
	for i, x := range slices {
		p.slices[i] = first(x, n)
	}
	if noise != nil {
		p.slices[len(slices)] = first(noise, n)
	}
	p.run(r)
	return n
}

// accelerateWide is accelerate for the rules that compute in float64.
func accelerateWide[T Float](r rule, s *sums[float64], c coefficients[float64], slices ...[]T) int {
	n := len(slices[0]) &^ (passLanes - 1)
	if n == 0 || !fast[T]() {
		return 0
	}
	p := pass{count: n, coefficients: unsafe.Pointer(&c), sums: unsafe.Pointer(s)}
	for i, x := range slices {
		p.slices[i] = first(x, n)
	}
	p.run(r)
	return n
}

func (p *pass) run(r rule) {
	at := (*byte)(unsafe.Pointer(p))
	switch r {
	case ruleAdd:
		addAVX2(at)
	case ruleSubtract:
		subtractAVX2(at)
	case ruleMultiply:
		multiplyAVX2(at)
	case ruleDivide:
		divideAVX2(at)
	case ruleRaise:
		raiseAVX2(at)
	case rulePassAbove:
		passAboveAVX2(at)
	case ruleKeep:
		keepAVX2(at)
	case ruleSum:
		sumAVX2(at)
	case ruleDot:
		dotAVX2(at)
	case ruleDecayedGradient:
		decayedGradientAVX2(at)
	case ruleLaplaceGradient:
		laplaceGradientAVX2(at)
	case ruleStudentGradient:
		studentGradientAVX2(at)
	case ruleSGLD:
		sgldAVX2(at)
	case rulePSGLD:
		psgldAVX2(at)
	case ruleSGHMC:
		sghmcAVX2(at)
	case ruleBAOAB:
		baoabAVX2(at)
	case ruleDrift:
		driftAVX2(at)
	case ruleSGD:
		sgdAVX2(at)
	case ruleMomentum:
		momentumAVX2(at)
	case ruleNesterov:
		nesterovAVX2(at)
	case ruleAdagrad:
		adagradAVX2(at)
	case ruleRMSProp:
		rmspropAVX2(at)
	case ruleAdadelta:
		adadeltaAVX2(at)
	case ruleAdam:
		adamAVX2(at)
	case ruleWideSum:
		wideSumAVX2(at)
	case ruleWideDifference:
		wideDifferenceAVX2(at)
	case ruleWideSquares:
		wideSquaresAVX2(at)
	case ruleWideProducts:
		wideProductsAVX2(at)
	case ruleWideAffine:
		wideAffineAVX2(at)
	case ruleWideCombine:
		wideCombineAVX2(at)
	}
}

func sumRowsFast[T Float](y, x []T, rows, stride int) int {
	n := len(y) &^ (passLanes - 1)
	if n == 0 || rows == 0 || !fast[T]() {
		return 0
	}
	sumRowsAVX2(first(y, n), first(x, (rows-1)*stride+n), n, rows, stride)
	return n
}

func scaleBytesFast[T Float](y []T, x []uint8, scale, shift T) int {
	n := len(y) &^ (passLanes - 1)
	if n == 0 || !fast[T]() {
		return 0
	}
	scaleBytesAVX2(first(y, n), unsafe.SliceData(x[:n]), n, float32(scale), float32(shift))
	return n
}
