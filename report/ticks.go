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
	first := math.Ceil(low/step - 1e-9)
	for i := range 10 {
		value := (first + float64(i)) * step
		if !(value <= high+1e-9*step) {
			break
		}
		// Rounding must not put a tick beyond the end of the axis.
		ticks = append(ticks, plot.Tick{Value: min(max(value, low), high), Label: tickLabel(value, int(exponent))})
	}
	return ticks
}

// tickLabel formats a multiple of 10^exponent as a decimal with a minus sign (U+2212) and separated
// thousands, or, if it is very large or small, in scientific notation.
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

// logTicks returns ticks for an axis of decimal logarithms. It labels powers of ten, also 2 and 5
// times these if the axis spans less than two decades, and about five plain numbers if it spans
// less than half a decade.
func logTicks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	if high-low < 0.5 {
		for _, tick := range linearTicks(math.Pow(10, low), math.Pow(10, high)) {
			ticks = append(ticks, plot.Tick{Value: math.Log10(tick.Value), Label: tick.Label})
		}
		return ticks
	}
	for exponent := math.Floor(low); exponent <= high; exponent++ {
		for digit := 1.0; digit < 10; digit++ {
			tick := plot.Tick{Value: exponent + math.Log10(digit)}
			if tick.Value < low || tick.Value > high {
				continue
			}
			if digit == 1 || high-low < 2 && (digit == 2 || digit == 5) {
				tick.Label = tickLabel(digit*math.Pow(10, exponent), int(exponent))
			}
			ticks = append(ticks, tick)
		}
	}
	return ticks
}
