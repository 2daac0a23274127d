package ptx_test

import (
	"cmp"
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"strings"
)

// signed interprets the lower bits of x as a signed number.
func signed(x uint64, size int) int64 { return int64(x<<(64-size)) >> (64 - size) }

// ofSize returns the lower bits of x.
func ofSize(x uint64, size int) uint64 { return x << (64 - size) >> (64 - size) }

// integers has the results of integer instructions according to the PTX ISA, on operands of size
// bits.
var integers = map[string]func(x []uint64, size int, hasSign bool) uint64{
	"add":    func(x []uint64, _ int, _ bool) uint64 { return x[0] + x[1] },
	"sub":    func(x []uint64, _ int, _ bool) uint64 { return x[0] - x[1] },
	"neg":    func(x []uint64, _ int, _ bool) uint64 { return -x[0] },
	"mul.lo": func(x []uint64, _ int, _ bool) uint64 { return x[0] * x[1] },
	"mad.lo": func(x []uint64, _ int, _ bool) uint64 { return x[0]*x[1] + x[2] },
	"mul.hi": func(x []uint64, size int, _ bool) uint64 { return x[0] * x[1] >> size },
	"mul.wide": func(x []uint64, size int, hasSign bool) uint64 {
		if hasSign {
			return uint64(signed(x[0], size) * signed(x[1], size))
		}
		return x[0] * x[1]
	},
	"div": func(x []uint64, size int, hasSign bool) uint64 {
		if x[1] == 0 {
			return math.MaxUint64
		}
		if hasSign {
			return uint64(signed(x[0], size) / signed(x[1], size))
		}
		return x[0] / x[1]
	},
	"rem": func(x []uint64, size int, hasSign bool) uint64 {
		if x[1] == 0 {
			return x[0]
		}
		if hasSign {
			return uint64(signed(x[0], size) % signed(x[1], size))
		}
		return x[0] % x[1]
	},
	"min": func(x []uint64, size int, hasSign bool) uint64 {
		if hasSign {
			return uint64(min(signed(x[0], size), signed(x[1], size)))
		}
		return min(x[0], x[1])
	},
	"max": func(x []uint64, size int, hasSign bool) uint64 {
		if hasSign {
			return uint64(max(signed(x[0], size), signed(x[1], size)))
		}
		return max(x[0], x[1])
	},
	"and": func(x []uint64, _ int, _ bool) uint64 { return x[0] & x[1] },
	"or":  func(x []uint64, _ int, _ bool) uint64 { return x[0] | x[1] },
	"xor": func(x []uint64, _ int, _ bool) uint64 { return x[0] ^ x[1] },
	"not": func(x []uint64, _ int, _ bool) uint64 { return ^x[0] },
	"shl": func(x []uint64, _ int, _ bool) uint64 { return x[0] << x[1] },
	"shr": func(x []uint64, size int, hasSign bool) uint64 {
		if hasSign {
			return uint64(signed(x[0], size) >> x[1])
		}
		return x[0] >> x[1]
	},
	"bfe": func(x []uint64, size int, hasSign bool) uint64 {
		from, count, last := int(x[1]&255), int(x[2]&255), size-1
		beyond := uint64(0) // the bit above the field
		if hasSign && count > 0 {
			beyond = x[0] >> min(from+count-1, last) & 1
		}
		field := uint64(0)
		for i := range size {
			bit := beyond
			if i < count && from+i <= last {
				bit = x[0] >> (from + i) & 1
			}
			field |= bit << i
		}
		return field
	},
	"clz": func(x []uint64, _ int, _ bool) uint64 { return uint64(bits.LeadingZeros64(x[0])) },
	"mov": func(x []uint64, _ int, _ bool) uint64 { return x[0] },
	"selp": func(x []uint64, _ int, _ bool) uint64 {
		if x[2] != 0 {
			return x[0]
		}
		return x[1]
	},
}

// numbers has the results of floating-point instructions, exactly or as float64.
var numbers = map[string]func(x []float64) float64{
	"add.rn": func(x []float64) float64 { return x[0] + x[1] },
	"sub.rn": func(x []float64) float64 { return x[0] - x[1] },
	"mul.rn": func(x []float64) float64 { return x[0] * x[1] },
	"div.rn": func(x []float64) float64 { return x[0] / x[1] },
	"rcp.rn": func(x []float64) float64 { return 1 / x[0] },

	"min": func(x []float64) float64 { return ofNumbers(x[0], x[1], math.Min) },
	"max": func(x []float64) float64 { return ofNumbers(x[0], x[1], math.Max) },

	"max.NaN":          func(x []float64) float64 { return max(x[0], x[1]) },
	"rcp.approx.ftz":   func(x []float64) float64 { return flushed(1 / flushed(x[0])) },
	"rsqrt.approx.ftz": func(x []float64) float64 { return flushed(1 / math.Sqrt(flushed(x[0]))) },
}

// ofNumbers applies f to two numbers, or returns the one that is not NaN.
func ofNumbers(a, b float64, of func(a, b float64) float64) float64 {
	switch {
	case math.IsNaN(a):
		return b
	case math.IsNaN(b):
		return a
	}
	return of(a, b)
}

// flushed returns a zero of the same sign for a subnormal float32.
func flushed(x float64) float64 {
	if math.Abs(float64(float32(x))) < 0x1p-126 {
		return math.Copysign(0, x)
	}
	return x
}

// fused returns a b + c rounded once to a float32 or a float64.
func fused(x []float64, size int) float64 {
	a, b, c := x[0], x[1], x[2]
	if v := a*b + c; math.IsNaN(v) || math.IsInf(a, 0) || math.IsInf(b, 0) || math.IsInf(c, 0) {
		return v
	}
	if size == 64 {
		return math.FMA(a, b, c)
	}
	exact := new(big.Float).SetPrec(2000)
	exact.Mul(new(big.Float).SetPrec(2000).SetFloat64(a), new(big.Float).SetFloat64(b))
	exact.Add(exact, new(big.Float).SetFloat64(c))
	if exact.Sign() == 0 {
		return a*b + c // whose sign is right
	}
	v, _ := exact.Float32()
	return float64(v)
}

func toNumber(word uint64, size int) float64 {
	if size == 32 {
		return float64(math.Float32frombits(uint32(word)))
	}
	return math.Float64frombits(word)
}

// toBits rounds v to a float32 or a float64; NaN becomes the one that GPUs produce.
func toBits(v float64, size int) uint64 {
	switch {
	case size == 32 && math.IsNaN(v):
		return 0x7fffffff
	case size == 32:
		return uint64(math.Float32bits(float32(v)))
	case math.IsNaN(v):
		return 0xfff8000000000000
	}
	return math.Float64bits(v)
}

// compared returns the result of setp. For floating-point numbers a comparison whose name ends in u
// is also true if one is NaN.
func compared[T cmp.Ordered](name string, a, b T) bool {
	either := a != a || b != b
	switch name {
	case "nan":
		return either
	case "num":
		return !either
	}
	plain, unordered := strings.CutSuffix(name, "u")
	if either {
		return unordered
	}
	return map[string]bool{"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[plain]
}

// meaning returns the result of an instruction for operands of the types that it reads.
func meaning(opcode string, reads []string, x []uint64) uint64 {
	parts := strings.Split(opcode, ".")
	kind := parts[len(parts)-1]
	size := 1
	if kind != "pred" {
		size, _ = strconv.Atoi(kind[1:])
	}
	name := strings.Join(parts[:len(parts)-1], ".")
	asBit := func(v bool) uint64 {
		if v {
			return 1
		}
		return 0
	}
	switch {
	case parts[0] == "cvt":
		return converted(opcode, x)
	case parts[0] == "setp" && kind[0] == 'f':
		return asBit(compared(parts[1], toNumber(x[0], size), toNumber(x[1], size)))
	case parts[0] == "setp" && kind[0] == 's':
		return asBit(compared(parts[1], signed(x[0], size), signed(x[1], size)))
	case parts[0] == "setp":
		return asBit(compared(parts[1], x[0], x[1]))
	case kind[0] != 'f' || name == "mov" || name == "selp":
		f := integers[name]
		if f == nil {
			return 0xbad
		}
		return f(x, size, kind[0] == 's')
	case name == "neg":
		return x[0] ^ 1<<(size-1)
	case name == "abs":
		return x[0] &^ (1 << (size - 1))
	}
	var v []float64
	for i := range reads {
		v = append(v, toNumber(x[i], size))
	}
	switch name {
	case "fma.rn":
		return toBits(fused(v, size), size)
	case "sqrt.rn":
		return toBits(math.Sqrt(v[0]), size)
	}
	f := numbers[name]
	if f == nil {
		return 0xbad
	}
	return toBits(f(v), size)
}

// converted returns the result of a conversion.
func converted(opcode string, x []uint64) uint64 {
	single, double := toNumber(x[0], 32), toNumber(x[0], 64)
	whole := func(v float64) uint64 {
		if math.IsNaN(v) {
			return 0
		}
		return uint64(int32(max(math.MinInt32, min(math.MaxInt32, math.Trunc(v)))))
	}
	switch opcode {
	case "cvt.rn.bf16x2.f32":
		return bf16(x[0], true)<<16 | bf16(x[1], true)
	case "cvt.rz.bf16x2.f32":
		return bf16(x[0], false)<<16 | bf16(x[1], false)
	case "cvt.f64.f32":
		return toBits(single, 64)
	case "cvt.rn.f32.f64":
		return toBits(double, 32)
	case "cvt.rn.f32.s32", "cvt.rn.f64.s32":
		return toBits(float64(int32(x[0])), map[bool]int{true: 32, false: 64}[strings.Contains(opcode, "f32")])
	case "cvt.rn.f32.u16", "cvt.rn.f32.u32":
		return toBits(float64(x[0]), 32)
	case "cvt.rn.f32.u64":
		return uint64(math.Float32bits(float32(x[0])))
	case "cvt.rn.f64.u16", "cvt.rn.f64.u64":
		return toBits(float64(x[0]), 64)
	case "cvt.rni.f32.f32":
		return toBits(math.RoundToEven(single), 32)
	case "cvt.rni.f64.f64":
		return toBits(math.RoundToEven(double), 64)
	case "cvt.rzi.f32.f32":
		return toBits(math.Trunc(single), 32)
	case "cvt.rzi.f64.f64":
		return toBits(math.Trunc(double), 64)
	case "cvt.rzi.s32.f32":
		return whole(single)
	case "cvt.rzi.s32.f64":
		return whole(double)
	case "cvt.s64.s32":
		return uint64(signed(x[0], 32))
	case "cvt.u64.u32", "cvt.u32.u16":
		return x[0]
	case "cvt.u32.u64":
		return x[0] & math.MaxUint32
	case "cvt.u16.u32":
		return x[0] & math.MaxUint16
	}
	return 0xbad
}

// bf16 rounds to seven bits of fraction, to nearest even, or towards zero.
func bf16(word uint64, toNearest bool) uint64 {
	v := math.Float32frombits(uint32(word))
	if v != v {
		return 0x7fff
	}
	below, above := word>>16, word>>16+1
	lower, upper := float64(math.Float32frombits(uint32(below<<16))), float64(math.Float32frombits(uint32(above<<16)))
	if math.IsInf(upper, 0) { // rounding treats infinity as the next number, 2^128
		upper = math.Copysign(0x1p128, upper)
	}
	down, up := math.Abs(float64(v)-lower), math.Abs(upper-float64(v))
	if toNearest && (up < down || up == down && above%2 == 0) {
		return above
	}
	return below
}
