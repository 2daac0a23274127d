package report

import (
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
)

// linearTicks places about five ticks at multiples of 1, 2 or 5 times a power of ten.
func linearTicks(low, high float64) []plot.Tick {
	rough := (high - low) / 5
	exponent := math.Floor(math.Log10(rough))
	step := math.Pow(10, exponent)
	switch mantissa := rough / step; {
	case mantissa > 7:
		step *= 10
		exponent++
	case mantissa > 3.5:
		step *= 5
	case mantissa > 1.5:
		step *= 2
	}
	var ticks []plot.Tick
	for i := math.Ceil(low/step - 1e-9); i*step <= high+1e-9*step; i++ {
		ticks = append(ticks, plot.Tick{Value: i * step, Label: tickLabel(i*step, int(exponent))})
	}
	return ticks
}

// tickLabel formats a multiple of 10^exponent: plain decimals with a true minus sign, and thousands set apart, unless
// the numbers are very large or very small.
func tickLabel(value float64, exponent int) string {
	if exponent > 5 || exponent < -4 {
		return strings.ReplaceAll(strconv.FormatFloat(value, 'g', 3, 64), "-", "−")
	}
	digits := strconv.FormatFloat(math.Abs(value), 'f', max(0, -exponent), 64)
	whole, fraction, _ := strings.Cut(digits, ".")
	if len(whole) > 4 {
		for i := len(whole) - 3; i > 0; i -= 3 {
			whole = whole[:i] + "\u00a0" + whole[i:]
		}
	}
	if fraction != "" {
		whole += "." + fraction
	}
	if value < 0 && strings.Trim(digits, "0.") != "" {
		whole = "−" + whole
	}
	return whole
}

// logTicks labels the powers of ten, and 2 and 5 times them where the range is less than two decades.
func logTicks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	short := high/low < 100
	for exponent := math.Floor(math.Log10(low)); math.Pow(10, exponent) <= high; exponent++ {
		for digit := 1.0; digit < 10; digit++ {
			value := digit * math.Pow(10, exponent)
			if value < low || value > high {
				continue
			}
			tick := plot.Tick{Value: value}
			if digit == 1 || short && (digit == 2 || digit == 5) {
				tick.Label = tickLabel(value, int(exponent))
			}
			ticks = append(ticks, tick)
		}
	}
	return ticks
}
