package kernel

// MultiplyAdds runs float32 multiply-adds in registers, at least one loop of them, and returns the
// number of floating-point operations, two for each. Operations per second of this function are the
// peak of one core.
func MultiplyAdds(loops int) (operations float64) {
	if operations, ok := multiplyAddsFast(loops); ok {
		return operations
	}
	var sums [4]float32
	for range loops {
		for i := range sums {
			sums[i] += sums[i] * 0.5
		}
	}
	if sums[0] != 0 {
		panic("kernel: a sum of zeros is not zero")
	}
	return float64(loops * len(sums) * 2)
}
