package approximate

import (
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// The suffixes of the trainable parameters that replace a parameter of the network.
const (
	meanSuffix = ".mu"
	rhoSuffix  = ".rho"
)

// drawStream is the stream of random numbers of draws on the host. The elements of all parameters
// follow one another in it. No graph has this many streams.
const drawStream = random.OrderStream - 1

// MeanField is the distribution q of a network's weights that BayesByBackprop fits: independent
// normals of mean mu and standard deviation sigma = softplus(rho).
type MeanField struct {
	factors []*factor
}

// factor is q of one parameter of the network.
type factor struct {
	name                     string
	shape                    tensor.Shape
	prior                    langevin.Prior
	mean, std, noise, weight *graph.Node
}

// add makes the parameters <name>.mu and <name>.rho, and returns the weight that is drawn from q at
// each step:
//
//	w = mu + softplus(rho) epsilon,    epsilon ~ N(0, 1)
func (q *MeanField) add(b *graph.Builder, name string, std float64, initialize graph.Initializer, shape ...int) *graph.Node {
	rho := math.Log(math.Expm1(std))
	f := &factor{name: name, shape: shape}
	f.mean = b.Parameter(name+meanSuffix, initialize, shape...)
	f.std = b.Apply(op.Softplus{}, b.Parameter(name+rhoSuffix, func(_ uint64, _ uint32, _ uint16, _ tensor.Shape, values []float64) {
		for i := range values {
			values[i] = rho
		}
	}, shape...))
	f.noise = b.Apply(op.Noise{Stream: b.Stream(), As: op.ViewAs(shape...)}, b.Header())
	f.weight = b.Apply(op.Add{}, f.mean, b.Apply(op.Multiply{}, f.std, f.noise))
	q.factors = append(q.factors, f)
	return f.weight
}

// of returns the factor that the node weight is drawn from, nil for other nodes.
func (q *MeanField) of(weight *graph.Node) *factor {
	for _, f := range q.factors {
		if weight != nil && f.weight == weight {
			return f
		}
	}
	return nil
}

// varianceFloor is added to the variance of a product, because the gradient of its root is infinite
// where all inputs of an example are 0.
const varianceFloor = 1e-12

// product draws the product of x with the weights from the product's own distribution,
// independently for each example:
//
//	y = x mu + sqrt(x^2 sigma^2) epsilon,    epsilon ~ N(0, 1)
func (f *factor) product(b *graph.Builder, product op.MatMul, x *graph.Node) *graph.Node {
	mean := b.Apply(product, x, f.mean)
	variance := b.Apply(product, b.Apply(op.Squared{}, x), b.Apply(op.Squared{}, f.std))
	std := b.Apply(op.Sqrt{}, b.Apply(op.Scale{Factor: 1, Offset: varianceFloor}, variance))
	noise := b.Apply(op.Noise{Stream: b.Stream(), As: op.ViewAs(graph.ShapeOf(mean)...)}, b.Header())
	return b.Apply(op.Add{}, mean, b.Apply(op.Multiply{}, std, noise))
}

// divergence returns the node of KL(q || prior): with closedForm by formula, for Gaussian priors,
// else log q(w) - log p(w) at the step's weights, whose expectation is KL(q || prior).
func (q *MeanField) divergence(b *graph.Builder, closedForm bool) *graph.Node {
	var total *graph.Node
	for _, f := range q.factors {
		leave := b.Scope(langevin.LayerOf(f.name))
		term := f.difference
		if closedForm {
			term = f.divergence
		}
		node := term(b)
		if total != nil {
			node = b.Apply(op.Add{}, total, node)
		}
		total = node
		leave()
	}
	return total
}

// difference is log q(w) - log p(w), where log q(w) = -sum of ln sigma + epsilon^2/2 + ln(2 pi)/2.
func (f *factor) difference(b *graph.Builder) *graph.Node {
	n := float64(f.shape.Elements())
	entropy := sumOf(b, b.Apply(op.Log{}, f.std))
	squares := sumOf(b, b.Apply(op.Squared{}, f.noise))
	logDensity := b.Apply(op.Scale{Factor: -0.5, Offset: -n / 2 * math.Log(2*math.Pi)}, squares)
	difference := b.Apply(op.Subtract{}, logDensity, entropy)
	if f.prior.Kind == langevin.FlatPrior {
		return difference
	}
	return b.Apply(op.Add{}, difference, f.prior.Potential(b, f.weight))
}

// divergence is KL(q || N(0, s^2)) = sum of (sigma^2 + mu^2)/(2 s^2) - ln(sigma/s) - 1/2.
func (f *factor) divergence(b *graph.Builder) *graph.Node {
	n, s := float64(f.shape.Elements()), f.prior.Scale
	squares := sumOf(b, b.Apply(op.Add{}, b.Apply(op.Squared{}, f.std), b.Apply(op.Squared{}, f.mean)))
	entropy := sumOf(b, b.Apply(op.Log{}, f.std))
	return b.Apply(op.Subtract{}, b.Apply(op.Scale{Factor: 1 / (2 * s * s), Offset: n * (math.Log(s) - 0.5)}, squares), entropy)
}

func sumOf(b *graph.Builder, n *graph.Node) *graph.Node { return b.Apply(op.Sum{}, n) }

// Draw draws weights from q in its present state in a chain of a session, whose program must
// contain this q. It returns them as a sample of the plain network's parameters, of weight 1.
// Different draw numbers from one state give independent samples; the sample's step is the
// session's plus the draw number.
func (q *MeanField) Draw(s *graph.Session, chain, draw int) (samples.Sample, error) {
	if err := q.check(s); err != nil {
		return samples.Sample{}, err
	}
	if draw < 0 || uint64(draw) > random.MaxStep-s.Steps() {
		return samples.Sample{}, errors.Errorf("approximate: mean field: the draw must be at least 0, got %d", draw)
	}
	address, err := drawAddress(s, chain, draw)
	if err != nil {
		return samples.Sample{}, err
	}
	sample := samples.Sample{Chain: int(address.Chain), Step: int(address.Step), Weight: 1}
	first := 0
	for _, f := range q.factors {
		p, err := f.readMean(s, chain)
		if err != nil {
			return samples.Sample{}, err
		}
		n := len(p.Values)
		rho, z := make([]float32, n), make([]float64, n)
		if err := s.ReadFloats(f.name+rhoSuffix, chain, rho); err != nil {
			return samples.Sample{}, errors.Wrap(err, "approximate: mean field")
		}
		random.Normals(z, first, address)
		for i, mean := range p.Values {
			p.Values[i] = float32(float64(mean) + float64(softplus(float64(rho[i]))*z[i]))
		}
		first += n
		sample.Parameters = append(sample.Parameters, p)
	}
	return sample, errors.Wrap(sample.Validate(), "approximate: mean field")
}

// check returns an error without a session, and for a q that no network was built with.
func (q *MeanField) check(s *graph.Session) error {
	if s == nil || len(q.factors) == 0 {
		return errors.New("approximate: mean field: there must be a session, and a MeanField of BayesByBackprop.Apply")
	}
	return nil
}

// Mean returns the mean of q in a chain of a session, whose program must contain this q, as a
// sample of the plain network's parameters, of weight 1.
func (q *MeanField) Mean(s *graph.Session, chain int) (samples.Sample, error) {
	if err := q.check(s); err != nil {
		return samples.Sample{}, err
	}
	address, err := drawAddress(s, chain, 0)
	if err != nil {
		return samples.Sample{}, err
	}
	sample := samples.Sample{Chain: int(address.Chain), Step: int(address.Step), Weight: 1}
	for _, f := range q.factors {
		p, err := f.readMean(s, chain)
		if err != nil {
			return samples.Sample{}, err
		}
		sample.Parameters = append(sample.Parameters, p)
	}
	return sample, errors.Wrap(sample.Validate(), "approximate: mean field")
}

// readMean reads mu in a chain of a session.
func (f *factor) readMean(s *graph.Session, chain int) (samples.Parameter, error) {
	p := samples.Parameter{Name: f.name, Shape: f.shape, Values: make([]float32, f.shape.Elements())}
	return p, errors.Wrap(s.ReadFloats(f.name+meanSuffix, chain, p.Values), "approximate: mean field")
}

// drawAddress returns the address of the random numbers of a draw from a chain's present state.
func drawAddress(s *graph.Session, chain, draw int) (random.Address, error) {
	header, err := s.Header(chain)
	if err != nil {
		return random.Address{}, errors.Wrap(err, "approximate: draw")
	}
	return random.Address{
		Seed: header[graph.HeaderSeed], Chain: uint32(header[graph.HeaderChain]),
		Step: header[graph.HeaderStep] + uint64(draw), Stream: drawStream,
	}, nil
}

func softplus(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }
