//go:build !purego

package kernel

import "unsafe"

// runAVX2 calls the assembly of a rule, whose only argument is the address of the pass.
func (p *pass) runAVX2(r rule) {
	at := (*byte)(unsafe.Pointer(p))
	switch r {
	case ruleAdd:
		addAVX2(at)
	case ruleSubtract:
		subtractAVX2(at)
	case ruleMultiply:
		multiplyAVX2(at)
	case ruleMultiplyPlane:
		multiplyPlaneAVX2(at)
	case ruleAddPlane:
		addPlaneAVX2(at)
	case ruleDivide:
		divideAVX2(at)
	case ruleRaise:
		raiseAVX2(at)
	case rulePassAbove:
		passAboveAVX2(at)
	case ruleClip:
		clipAVX2(at)
	case rulePassWithin:
		passWithinAVX2(at)
	case ruleHardSwish:
		hardSwishAVX2(at)
	case ruleHardSwishGradient:
		hardSwishGradientAVX2(at)
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
	case ruleDecayedSGLD:
		decayedSGLDAVX2(at)
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
	case ruleExpm1:
		expm1AVX2(at)
	case ruleSigmoid:
		sigmoidAVX2(at)
	case ruleSigmoidGradient:
		sigmoidGradientAVX2(at)
	case ruleSiLU:
		siluAVX2(at)
	case ruleSiLUGradient:
		siluGradientAVX2(at)
	case ruleTanh:
		tanhAVX2(at)
	case ruleErf:
		erfAVX2(at)
	case ruleGELU:
		geluAVX2(at)
	case ruleTanhGradient:
		tanhGradientAVX2(at)
	case ruleELU:
		eluAVX2(at)
	case ruleSoftplus:
		softplusAVX2(at)
	case ruleSoftplusGradient:
		softplusGradientAVX2(at)
	case ruleLog:
		logAVX2(at)
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
	case ruleWideAffineRow:
		wideAffineRowAVX2(at)
	case ruleWideCombine:
		wideCombineAVX2(at)
	}
}

// runAVX512 is runAVX2 for AVX-512.
func (p *pass) runAVX512(r rule) {
	at := (*byte)(unsafe.Pointer(p))
	switch r {
	case ruleAdd:
		addAVX512(at)
	case ruleSubtract:
		subtractAVX512(at)
	case ruleMultiply:
		multiplyAVX512(at)
	case ruleMultiplyPlane:
		multiplyPlaneAVX512(at)
	case ruleAddPlane:
		addPlaneAVX512(at)
	case ruleDivide:
		divideAVX512(at)
	case ruleRaise:
		raiseAVX512(at)
	case rulePassAbove:
		passAboveAVX512(at)
	case ruleClip:
		clipAVX512(at)
	case rulePassWithin:
		passWithinAVX512(at)
	case ruleHardSwish:
		hardSwishAVX512(at)
	case ruleHardSwishGradient:
		hardSwishGradientAVX512(at)
	case ruleKeep:
		keepAVX512(at)
	case ruleSum:
		sumAVX512(at)
	case ruleDot:
		dotAVX512(at)
	case ruleDecayedGradient:
		decayedGradientAVX512(at)
	case ruleLaplaceGradient:
		laplaceGradientAVX512(at)
	case ruleStudentGradient:
		studentGradientAVX512(at)
	case ruleSGLD:
		sgldAVX512(at)
	case ruleDecayedSGLD:
		decayedSGLDAVX512(at)
	case rulePSGLD:
		psgldAVX512(at)
	case ruleSGHMC:
		sghmcAVX512(at)
	case ruleBAOAB:
		baoabAVX512(at)
	case ruleDrift:
		driftAVX512(at)
	case ruleSGD:
		sgdAVX512(at)
	case ruleMomentum:
		momentumAVX512(at)
	case ruleNesterov:
		nesterovAVX512(at)
	case ruleAdagrad:
		adagradAVX512(at)
	case ruleRMSProp:
		rmspropAVX512(at)
	case ruleAdadelta:
		adadeltaAVX512(at)
	case ruleAdam:
		adamAVX512(at)
	case ruleExpm1:
		expm1AVX512(at)
	case ruleSigmoid:
		sigmoidAVX512(at)
	case ruleSigmoidGradient:
		sigmoidGradientAVX512(at)
	case ruleSiLU:
		siluAVX512(at)
	case ruleSiLUGradient:
		siluGradientAVX512(at)
	case ruleTanh:
		tanhAVX512(at)
	case ruleErf:
		erfAVX512(at)
	case ruleGELU:
		geluAVX512(at)
	case ruleTanhGradient:
		tanhGradientAVX512(at)
	case ruleELU:
		eluAVX512(at)
	case ruleSoftplus:
		softplusAVX512(at)
	case ruleSoftplusGradient:
		softplusGradientAVX512(at)
	case ruleLog:
		logAVX512(at)
	case ruleWideSum:
		wideSumAVX512(at)
	case ruleWideDifference:
		wideDifferenceAVX512(at)
	case ruleWideSquares:
		wideSquaresAVX512(at)
	case ruleWideProducts:
		wideProductsAVX512(at)
	case ruleWideAffine:
		wideAffineAVX512(at)
	case ruleWideAffineRow:
		wideAffineRowAVX512(at)
	case ruleWideCombine:
		wideCombineAVX512(at)
	}
}

func (p *pass) run(r rule) {
	if isa == avx512 {
		p.runAVX512(r)
	} else {
		p.runAVX2(r)
	}
}
