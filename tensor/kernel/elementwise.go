package kernel

import "math"

// Add computes y = a + b.
func Add[T Float](y, a, b []T) {
	for i := accelerate(ruleAdd, nil, coefficients[T]{}, nil, y, a, b); i < len(y); i++ {
		y[i] = a[i] + b[i]
	}
}

// Subtract computes y = a - b.
func Subtract[T Float](y, a, b []T) {
	for i := accelerate(ruleSubtract, nil, coefficients[T]{}, nil, y, a, b); i < len(y); i++ {
		y[i] = a[i] - b[i]
	}
}

// Multiply computes y = a b.
func Multiply[T Float](y, a, b []T) {
	for i := accelerate(ruleMultiply, nil, coefficients[T]{}, nil, y, a, b); i < len(y); i++ {
		y[i] = a[i] * b[i]
	}
}

// Divide computes y = a / b.
func Divide[T Float](y, a, b []T) {
	for i := accelerate(ruleDivide, nil, coefficients[T]{}, nil, y, a, b); i < len(y); i++ {
		y[i] = a[i] / b[i]
	}
}

// Raise computes y = max(x, bound), the ReLU if bound is 0. A zero result is positive, and NaN
// stays NaN.
func Raise[T Float](y, x []T, bound T) {
	for i := accelerate(ruleRaise, nil, coefficients[T]{bound}, nil, y, x); i < len(y); i++ {
		y[i] = max(x[i], bound) + 0 // -0 becomes 0
	}
}

// PassAbove computes dx = dout where y > bound and 0 elsewhere, the gradient of Raise.
func PassAbove[T Float](dx, dout, y []T, bound T) {
	from := accelerate(rulePassAbove, nil, coefficients[T]{bound}, nil, dx, dout, y)
	switch dx := any(dx[from:]).(type) {
	case []float32:
		passAbove32(dx, any(dout[from:]).([]float32), any(y[from:]).([]float32), float32(bound))
	case []float64:
		passAbove64(dx, any(dout[from:]).([]float64), any(y[from:]).([]float64), float64(bound))
	}
}

// passAbove32 selects bits instead of branching: a branch on activations is mispredicted half the
// time.
func passAbove32(dx, dout, y []float32, bound float32) {
	dx, dout = dx[:len(y)], dout[:len(y)]
	for i, v := range y {
		bits := math.Float32bits(dout[i])
		if !(v > bound) {
			bits = 0
		}
		dx[i] = math.Float32frombits(bits)
	}
}

// passAbove64 is passAbove32 for float64.
func passAbove64(dx, dout, y []float64, bound float64) {
	dx, dout = dx[:len(y)], dout[:len(y)]
	for i, v := range y {
		bits := math.Float64bits(dout[i])
		if !(v > bound) {
			bits = 0
		}
		dx[i] = math.Float64frombits(bits)
	}
}

// Clip computes y = min(max(x, low), high), where low is at most high. A zero result is positive,
// and NaN stays NaN.
func Clip[T Float](y, x []T, low, high T) {
	for i := accelerate(ruleClip, nil, coefficients[T]{low, high}, nil, y, x); i < len(y); i++ {
		y[i] = min(max(x[i], low), high) + 0 // -0 becomes 0
	}
}

// PassWithin computes dx = dout where low < y < high and 0 elsewhere, the gradient of Clip.
func PassWithin[T Float](dx, dout, y []T, low, high T) {
	for i := accelerate(rulePassWithin, nil, coefficients[T]{low, high}, nil, dx, dout, y); i < len(y); i++ {
		passed := dout[i]
		if !(y[i] > low && y[i] < high) {
			passed = 0
		}
		dx[i] = passed
	}
}

// HardSwish computes y = x t, where t = min(max(x/6 + 1/2, 0), 1).
func HardSwish(y, x []float32) {
	c := hardSwish()
	for i := accelerate(ruleHardSwish, nil, c, nil, y, x); i < len(y); i++ {
		y[i] = hardSwishFactor(x[i], &c) * x[i]
	}
}

// HardSwishGradient computes dx = dout (t + x/6) where 0 < t < 1, and dout t elsewhere, with the t
// of [HardSwish].
func HardSwishGradient(dx, dout, x []float32) {
	c := hardSwish()
	for i := accelerate(ruleHardSwishGradient, nil, c, nil, dx, dout, x); i < len(dx); i++ {
		slope := hardSwishFactor(x[i], &c)
		if 0 < slope && slope < c[2] {
			slope = float32(x[i]*c[0]) + slope
		}
		dx[i] = slope * dout[i]
	}
}

// hardSwish returns the coefficients of the hard swish: 1/6, 1/2 and 1.
func hardSwish() coefficients[float32] { return coefficients[float32]{1.0 / 6, 0.5, 1} }

func hardSwishFactor(x float32, c *coefficients[float32]) float32 {
	return max(min(float32(x*c[0])+c[1], c[2]), 0)
}

// Keep computes dropout: y = scale x where the uniform u is above rate, and 0 elsewhere.
func Keep[T Float](y, x []T, u []float32, rate float32, scale T) {
	for i := accelerate(ruleKeep, nil, coefficients[T]{scale, T(rate)}, u, y, x); i < len(y); i++ {
		kept := x[i] * scale
		if !(u[i] > rate) {
			kept = 0
		}
		y[i] = kept
	}
}

// SumRows computes y[i] = sum over r of x[r stride + i], row after row.
func SumRows[T Float](y, x []T, rows, stride int) {
	i := sumRowsFast(y, x, rows, stride)
	for ; i+4 <= len(y); i += 4 {
		var a, b, c, d T
		for r := range rows {
			row := (*[4]T)(x[r*stride+i:])
			a, b, c, d = a+row[0], b+row[1], c+row[2], d+row[3]
		}
		y[i], y[i+1], y[i+2], y[i+3] = a, b, c, d
	}
	for ; i < len(y); i++ {
		var sum T
		for r := range rows {
			sum += x[r*stride+i]
		}
		y[i] = sum
	}
}

// ScaleBytes computes y = scale x + shift, for example to normalize the bytes of images.
func ScaleBytes[T Float](y []T, x []uint8, scale, shift T) {
	for i := scaleBytesFast(y, x, scale, shift); i < len(y); i++ {
		y[i] = T(T(x[i])*scale) + shift
	}
}
