package optest

import (
	"fmt"
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// difference is the step h of central finite differences: the truncation error grows like h^2, and
// the rounding error like epsilon/h.
const difference = 1e-5

// finiteDifference evaluates sum(cotangent * y) as a function of a row's inputs, in float64 on the
// host.
type finiteDifference struct {
	s       *compiledCase
	session *graph.Session
	values  [][]float64
	weights []float64
	size    float64 // the sum of the terms' magnitudes at the last evaluation
}

// evaluate returns the sum with other values of input i.
func (p *finiteDifference) evaluate(i int, values []float64) (float64, error) {
	if err := p.s.writeInput(p.session, 0, i, values); err != nil {
		return 0, err
	}
	for j, in := range p.s.c.Inputs {
		if in.isHeader() { // undo the step that the last evaluation has counted
			if err := p.s.writeInput(p.session, 0, j, p.values[j]); err != nil {
				return 0, err
			}
		}
	}
	if err := p.session.Run(1); err != nil {
		return 0, err
	}
	y, err := readAs[float64](p.session, outputName, 0, len(p.weights))
	if err != nil {
		return 0, err
	}
	total := 0.0
	p.size = 0
	for i, w := range p.weights {
		total += w * y[i]
		p.size += math.Abs(w * y[i])
	}
	return total, nil
}

// along returns the directional derivative of the sum for input i.
func (p *finiteDifference) along(i int, direction []float64) (float64, error) {
	var sums [2]float64
	for side, h := range []float64{difference, -difference} {
		moved := append([]float64(nil), p.values[i]...)
		for j := range moved {
			moved[j] += h * direction[j]
		}
		var err error
		if sums[side], err = p.evaluate(i, moved); err != nil {
			return 0, err
		}
	}
	return (sums[0] - sums[1]) / (2 * difference), p.s.writeInput(p.session, 0, i, p.values[i])
}

// checkFiniteDifferences compares a row's gradients, in float64, with finite differences: for each
// input in two random directions, and for some single elements.
func (c *Case) checkFiniteDifferences(host tensor.Device, s *compiledCase, computed [][]float64) error {
	forward, err := c.compile(tensor.Float64, true, false)
	if err != nil {
		return err
	}
	session, err := forward.program.Load(host, graph.LoadOptions{Seed: seed})
	if err != nil {
		return err
	}
	defer session.Close()
	p := &finiteDifference{s: forward, session: session, values: c.values(0), weights: s.cotangent(0)}
	if err := forward.write(session, 0, p.values); err != nil {
		return err
	}
	for k, v := range s.variables {
		if v.role != gradient {
			continue
		}
		for number, direction := range c.directions(v.input, len(computed[k])) {
			want, err := p.along(v.input, direction)
			if err != nil {
				return err
			}
			got, g2, d2 := 0.0, 0.0, 0.0
			for j, g := range computed[k] {
				got += g * direction[j]
				g2 += g * g
				d2 += direction[j] * direction[j]
			}
			// The tolerance is relative to the gradient's length, for a single element to the
			// root mean square of the elements.
			scale := math.Sqrt(g2 * d2 / float64(len(direction)))
			tol := Tol{Abs: 1e-6*scale + 0x1p-50*p.size/difference}
			if err := Close([]float64{got}, []float64{want}, tol); err != nil {
				return errors.Wrapf(err, "%s against finite differences, direction %d", v.title, number)
			}
		}
	}
	return nil
}

// directions returns two random directions, and unit vectors of up to ten elements, including the
// first and the last.
func (c *Case) directions(input, elements int) [][]float64 {
	shape := tensor.Shape{elements}
	var all [][]float64
	for i := range 2 {
		all = append(all, c.draw(fmt.Sprint("direction ", input, " ", i), 0, shape, Normal))
	}
	singles := min(10, elements)
	for i := range singles {
		one := make([]float64, elements)
		one[i*(elements-1)/max(1, singles-1)] = 1
		all = append(all, one)
	}
	return all
}
