package llc

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/floats"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// The largest curvature is estimated by power iteration, on a minibatch of at most curvatureBatch
// examples, with Hessian-vector products from gradients at a distance of curvatureDistance times
// the norm of the parameters.
const (
	curvatureBatch      = 1000
	curvatureIterations = 12
	curvatureDistance   = 1e-3
)

// curvature returns the largest eigenvalue, by its absolute value, of the Hessian of the mean loss
// at the centre. The eigenvalue of a minibatch tends to be larger than the full data's, which errs
// on the side of smaller steps.
func (m Model) curvature(device tensor.Device, seed uint64) (float64, error) {
	b := graph.New(tensor.Float32)
	losses := m.losses(b, op.Batch{Size: min(m.DataSize, curvatureBatch), Order: op.Shuffled})
	loss := b.Apply(op.Mean{}, losses)
	parameters := b.Parameters()
	for i, gradient := range b.Gradients(loss, parameters...) {
		b.Output("gradient "+parameters[i].Name(), gradient)
	}
	s, err := m.load(device, b, graph.LoadOptions{Seed: seed})
	if err != nil {
		return 0, err
	}
	defer s.Close()
	distance := cmp.Or(curvatureDistance*m.norm(), curvatureDistance)
	random := rand.New(rand.NewPCG(seed, 0))
	direction := make([]float64, m.Weights())
	for i := range direction {
		direction[i] = random.NormFloat64()
	}
	largest := 0.0
	for range curvatureIterations {
		floats.Scale(1/floats.Norm(direction, 2), direction)
		up, err := gradientAt(s, direction, distance)
		if err != nil {
			return 0, err
		}
		down, err := gradientAt(s, direction, -distance)
		if err != nil {
			return 0, err
		}
		floats.Sub(up, down)
		floats.Scale(1/(2*distance), up)
		largest, direction = floats.Norm(up, 2), up
		if largest == 0 { // a loss that does not depend on the parameters
			return 0, nil
		}
	}
	return largest, nil
}

// gradientAt returns the gradient of the first minibatch at an offset along a direction.
func gradientAt(s *graph.Session, direction []float64, distance float64) ([]float64, error) {
	gradient, from := make([]float64, len(direction)), 0
	for _, p := range s.Program().Parameters() {
		values := make([]float32, p.Shape.Elements())
		for i := range values {
			values[i] = float32(distance * direction[from+i])
		}
		if err := s.WriteFloats(p.Name, 0, values); err != nil {
			return nil, err
		}
		from += len(values)
	}
	if err := s.SetStep(0, 0); err != nil {
		return nil, err
	}
	if err := s.Run(1); err != nil {
		return nil, err
	}
	from = 0
	for _, p := range s.Program().Parameters() {
		values := make([]float32, p.Shape.Elements())
		if err := s.ReadFloats("gradient "+p.Name, 0, values); err != nil {
			return nil, err
		}
		for i, v := range values {
			gradient[from+i] = float64(v)
		}
		from += len(values)
	}
	return gradient, nil
}

// gridSteps is the number of step sizes of the default grid, each half of the one before.
const gridSteps = 5

// grid returns step sizes from the largest curvature of the loss. A step is stable along a
// direction of curvature k of the loss if epsilon N beta k < 4. The noise of minibatches of B
// examples adds energy as if the curvature were 1 + N beta/B times as large, for a model whose
// Fisher information is its Hessian. The grid begins at the step size that gives the steepest
// direction an eighth too much energy.
func grid(dataSize, batch int, beta, localization, curvature float64) []float64 {
	n := float64(dataSize)
	effective := n * beta * curvature
	if batch < dataSize {
		effective *= 1 + n*beta/float64(batch)
	}
	largest := 0.5 / math.Max(effective+localization, math.SmallestNonzeroFloat32)
	return halvings(largest, gridSteps)
}

// round rounds to two digits, so that a step size of a table can be typed again.
func round(v float64) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 2, 64), 64)
	if err != nil { // an infinite one
		return v
	}
	return rounded
}

// falling returns values from the largest to the smallest.
func falling(values []float64) []float64 {
	values = slices.Clone(values)
	slices.Sort(values)
	slices.Reverse(values)
	return values
}
