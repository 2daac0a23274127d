package kernel

import "math"

// Log computes y = ln x, with a relative error of at most 2^-23. It is -Inf at 0 and NaN below. As
// in exponential.go, all ways to compute it give the same bits, and y may be x.
func Log(y, x []float32) {
	for i := accelerate(ruleLog, nil, logarithm, nil, y, x); i < len(y); i++ {
		y[i] = log(x[i])
	}
}

// The constants of the logarithm.
const (
	logNormal   = 0x1p-126   // the smallest normal number
	logRaise    = 0x1p23     // what smaller ones are multiplied by
	logRootHalf = 0x3f3504f3 // the bits of sqrt(1/2)
	logExponent = 127 << 23  // the bits of 1
	logMantissa = 1<<23 - 1  // the bits of a mantissa
	logWhole    = 0x1p23     // integers below, in the lowest bits of its mantissa, are added to it
)

// logarithm has these constants as coefficients of a pass, in the assembly's order.
var logarithm = coefficients[float32]{
	logNormal, logRaise - 1, 23,
	math.Float32frombits(logExponent - logRootHalf), math.Float32frombits(logMantissa), math.Float32frombits(logRootHalf), logWhole, logWhole + 127,
	1, 2, 0.5, 2.0 / 9, 2.0 / 7, 2.0 / 5, 2.0 / 3, ln2High, ln2Low,
	math.SmallestNonzeroFloat32, float32(math.Inf(-1)), float32(math.NaN()), math.MaxFloat32, float32(math.Inf(1)),
}

// log returns n ln 2 + ln m, where x = 2^n m and m is between sqrt(1/2) and sqrt 2. With f = m - 1
// and s = f/(2 + f), ln m = 2 atanh s = f - f^2/2 + s (f^2/2 + r), where r/2 is the series of
// atanh(s)/s - 1, whose remainder is below 2^-27.
func log(x float32) float32 {
	switch {
	case x == 0:
		return float32(math.Inf(-1))
	case !(x > 0):
		return float32(math.NaN())
	case x > math.MaxFloat32:
		return x
	}
	var raised float32
	if x < logNormal {
		x, raised = x*logRaise, 23
	}
	bits := math.Float32bits(x) + (logExponent - logRootHalf)
	n := math.Float32frombits(bits>>23|math.Float32bits(logWhole)) - (logWhole + 127) - raised
	f := math.Float32frombits(bits&logMantissa+logRootHalf) - 1
	s := f / (2 + f)
	z := float32(s * s)
	q := float32(2.0 / 9)
	q = float32(q*z) + 2.0/7
	q = float32(q*z) + 2.0/5
	q = float32(q*z) + 2.0/3
	half := float32(float32(f*f) * 0.5)
	rest := float32(s*(half+float32(q*z))) + float32(n*ln2Low)
	return ((rest - half) + f) + float32(n*ln2High)
}
