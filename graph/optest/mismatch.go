package optest

import (
	"fmt"
	"math"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/tensor"
)

// mismatch is the error of numbers that differ from the wanted ones by more than a tolerance or,
// with bits, in any bit.
type mismatch struct {
	got, want []float64
	tol       Tol
	bits      bool

	// The program and the shape of the numbers, if known.
	subject *compiledCase
	shape   tensor.Shape

	wrong  []int   // the indices of the elements that differ
	worst  int     // the one among them with the largest excess
	excess float64 // its distance, in units of the tolerance
	bias   float64 // see biasOf
}

// compare returns nil if all numbers are within the tolerance or, with bits, are identical. Both
// slices must have the same length.
func compare(got, want []float64, tol Tol, bits bool) *mismatch {
	m := &mismatch{got: got, want: want, tol: tol, bits: bits}
	far := -1.0 // the worst element's distance; it orders those whose excess is infinite
	for i := range got {
		e := distance(got[i], want[i], tol)
		if bits && math.Float64bits(got[i]) == math.Float64bits(want[i]) || !bits && e <= 1 {
			continue
		}
		m.wrong = append(m.wrong, i)
		d := math.Abs(got[i] - want[i])
		if math.IsNaN(d) {
			d = math.Inf(1)
		}
		if e > m.excess || e == m.excess && d > far {
			m.worst, m.excess, far = i, e, d
		}
	}
	if len(m.wrong) == 0 {
		return nil
	}
	m.bias, _ = biasOf(got, want)
	return m
}

// Close returns an error if an element of got is not within the tolerance of want's. The error has
// the number of such elements, the index of the worst, its distance in units in the last place (of
// float32 if all of got are exact in float32), and the bias. NaN is close to nothing, an infinity
// only to itself.
func Close(got, want []float64, tol Tol) error {
	if len(got) != len(want) {
		return lengths(got, want)
	}
	if m := compare(got, want, tol, false); m != nil {
		return m
	}
	return nil
}

func lengths(got, want []float64) error {
	return errors.Errorf("optest: close: got %d elements, want %d", len(got), len(want))
}

// Same returns an error if an element of got does not have the bits of want's. The error has the
// number of such elements, the worst one, and the bias.
func Same(got, want []float64) error {
	if len(got) != len(want) {
		return lengths(got, want)
	}
	if m := compare(got, want, Tol{}, true); m != nil {
		return m
	}
	return nil
}

// Error implements error, in one line.
func (m *mismatch) Error() string {
	i := m.worst
	if m.bits {
		return fmt.Sprintf("optest: same: %d of %d elements have other bits; the worst is element %d: got %v, want the bits of %v (%.4g ulp); bias %.2g",
			len(m.wrong), len(m.got), i, m.got[i], m.want[i], ulps(m.got, m.got[i], m.want[i]), m.bias)
	}
	off := fmt.Sprintf("%.4g ulp, %.3g times the tolerance of %.3g", ulps(m.got, m.got[i], m.want[i]), m.excess, m.tol.Abs+m.tol.Rel*math.Abs(m.want[i]))
	return fmt.Sprintf("optest: close: %d of %d elements are off; the worst is element %d: got %v, want %v (%s); bias %.2g",
		len(m.wrong), len(m.got), i, m.got[i], m.want[i], off, m.bias)
}

// biasOf returns the mean of (got-want)/|want|, and of its magnitude, over the elements where that
// is finite. The bias of independent rounding errors is far below the magnitude; the bias of
// truncation is about as large.
func biasOf(got, want []float64) (bias, magnitude float64) {
	n := 0.0
	for i, g := range got {
		if e := (g - want[i]) / math.Abs(want[i]); !math.IsNaN(e) && !math.IsInf(e, 0) {
			bias += e
			magnitude += math.Abs(e)
			n++
		}
	}
	return bias / max(1, n), magnitude / max(1, n)
}

// describe lists the statistics that distinguish rounding from a fault, and faults from each other.
func (m *mismatch) describe() []string {
	n, bad := len(m.got), len(m.wrong)
	i := m.worst
	lines := []string{
		fmt.Sprintf("wrong: %d of %d elements (%.3g %%)", bad, n, 100*float64(bad)/float64(n)),
		fmt.Sprintf("worst: index %d%s, got %v, want %v, difference %.6g, %.4g ulp", i, m.coordinates(i), m.got[i], m.want[i], m.got[i]-m.want[i],
			ulps(m.got, m.got[i], m.want[i])),
	}
	if m.bits {
		lines = append(lines, "tolerance: none, all bits must be the same")
	} else {
		lines = append(lines, fmt.Sprintf("tolerance: %.6g + %.6g |want|", m.tol.Abs, m.tol.Rel))
	}
	total, most, numbers := 0.0, 0.0, 0
	gotNaN, gotInf, wantOdd, zeros, elsewhere := 0, 0, 0, 0, 0
	values := map[uint64]bool{}
	for _, v := range m.want {
		values[math.Float64bits(v)] = true
		values[math.Float64bits(float64(float32(v)))] = true
	}
	square := 0.0
	for j, v := range m.want {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			wantOdd++
		} else {
			square += v * v / float64(n)
		}
		if math.IsNaN(m.got[j]) {
			gotNaN++
		}
		if math.IsInf(m.got[j], 0) {
			gotInf++
		}
		if m.got[j] == 0 && v != 0 {
			zeros++
		}
	}
	for _, j := range m.wrong {
		e := math.Abs(m.got[j] - m.want[j])
		if unit := m.tol.Abs + m.tol.Rel*math.Abs(m.want[j]); !m.bits && unit > 0 {
			e /= unit
		}
		if !math.IsNaN(e) && !math.IsInf(e, 0) {
			numbers++
			total += e
			most = max(most, e)
		}
		if values[math.Float64bits(m.got[j])] {
			elsewhere++
		}
	}
	unit := "times the tolerance"
	if m.bits || m.tol == (Tol{}) {
		unit = "in absolute terms"
	}
	bias, magnitude := biasOf(m.got, m.want)
	lines = append(lines,
		fmt.Sprintf("excess of wrong elements, %s: max %.4g, mean %.4g, of %d that are finite; root mean square of want %.4g",
			unit, most, total/float64(max(1, numbers)), numbers, math.Sqrt(square)),
		fmt.Sprintf("bias: mean of (got-want)/|want| %.4g, mean of its magnitude %.4g, ratio %.3g (near 1 or -1: truncation or a factor; near 0: rounding)",
			bias, magnitude, bias/magnitude),
		fmt.Sprintf("got has %d NaN, %d infinities, %d zeros where want has none; want has %d that are not finite", gotNaN, gotInf, zeros, wantOdd),
		fmt.Sprintf("%d of the wrong values occur elsewhere in want", elsewhere),
	)
	return append(append(lines, m.clusters()...), m.axes()...)
}

// clusters describes where the wrong indices lie.
func (m *mismatch) clusters() []string {
	divisor, runs, longest, run := 0, 0, 0, 0
	for k, i := range m.wrong {
		if k > 0 {
			divisor = gcd(divisor, i-m.wrong[k-1])
		}
		if k == 0 || i != m.wrong[k-1]+1 {
			runs++
			run = 0
		}
		run++
		longest = max(longest, run)
	}
	return []string{
		fmt.Sprintf("wrong indices: first %d, last %d, %d runs of neighbours, longest run %d, all distances are multiples of %d",
			m.wrong[0], m.wrong[len(m.wrong)-1], runs, longest, divisor),
		fmt.Sprintf("first wrong indices: %v", m.wrong[:min(len(m.wrong), 48)]),
	}
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// axes describes, for each axis of the numbers' shape, where along it the wrong elements lie.
func (m *mismatch) axes() (lines []string) {
	if len(m.shape) == 0 || m.shape.Elements() != len(m.got) {
		return nil
	}
	lines = append(lines, fmt.Sprintf("shape: %v", m.shape))
	stride := len(m.got)
	for axis, extent := range m.shape {
		stride /= extent
		counts := make([]int, extent)
		for _, i := range m.wrong {
			counts[i/stride%extent]++
		}
		var places []string
		for at, count := range counts {
			if count > 0 {
				places = append(places, fmt.Sprintf("%d:%d", at, count))
			}
		}
		lines = append(lines, fmt.Sprintf("axis %d: wrong elements at %d of %d places, place:count %s", axis, len(places), extent,
			strings.Join(places[:min(len(places), 64)], " ")))
	}
	return lines
}

// coordinates returns an element's indices in the shape, if that is known.
func (m *mismatch) coordinates(i int) string {
	if len(m.shape) == 0 || m.shape.Elements() != len(m.got) {
		return ""
	}
	at := make([]int, len(m.shape))
	for axis := len(at) - 1; axis >= 0; axis-- {
		at[axis] = i % m.shape[axis]
		i /= m.shape[axis]
	}
	return fmt.Sprintf(" at %v", at)
}
