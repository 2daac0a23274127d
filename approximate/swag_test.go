package approximate_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/approximate"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// trajectory are states of chain 3 of two parameters, seven elements in all, after steps 10, 20,
// ... They move away from 0 and from each other.
func trajectory(states int) []samples.Sample {
	var all []samples.Sample
	for i := range states {
		z := trial.NormalDraws(7, uint16(30+i))
		v := make([]float32, 7)
		for j := range v {
			v[j] = float32(100 + 3*float64(j) + z[j] + 0.8*z[(j+1)%7])
		}
		all = append(all, samples.Sample{Chain: 3, Step: 10 * (i + 1), Weight: 0.5, Parameters: []samples.Parameter{
			{Name: "w.weight", Shape: tensor.Shape{2, 2}, Values: v[:4]}, {Name: "w.bias", Shape: tensor.Shape{3}, Values: v[4:]},
		}})
	}
	return all
}

func flat(s samples.Sample) []float64 {
	var v []float64
	for _, p := range s.Parameters {
		v = append(v, tensor.Convert[float64](p.Values)...)
	}
	return v
}

const swagSeed = 17

func swag(t *testing.T, rank int, samples []samples.Sample) *approximate.SWAG {
	t.Helper()
	g, err := approximate.NewSWAG(swagSeed, rank)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range samples {
		if err := g.Collect(s); err != nil || g.Collected() != i+1 {
			t.Fatalf("%d collected, error %v", g.Collected(), err)
		}
	}
	return g
}

// swagMoments are the mean, the diagonal Sigma and the columns of D as in algorithm 1, by running
// first and second moments.
func swagMoments(samples []samples.Sample, rank int) (mean, diagonal []float64, columns [][]float64) {
	n := len(flat(samples[0]))
	mean, squares := make([]float64, n), make([]float64, n)
	for t, s := range samples {
		column := make([]float64, n)
		for i, theta := range flat(s) {
			mean[i] = (float64(t)*mean[i] + theta) / float64(t+1)
			squares[i] = (float64(t)*squares[i] + theta*theta) / float64(t+1)
			column[i] = theta - mean[i]
		}
		columns = append(columns, column)
	}
	for i := range mean {
		diagonal = append(diagonal, squares[i]-mean[i]*mean[i])
	}
	return mean, diagonal, columns[len(columns)-rank:]
}

// TestSWAGFormula compares draws with algorithm 1 in float64 and the normals at their address.
func TestSWAGFormula(t *testing.T) {
	for _, c := range []struct{ states, rank int }{{2, 0}, {13, 0}, {2, 2}, {5, 5}, {13, 5}, {20, 3}} {
		samples := trajectory(c.states)
		g := swag(t, c.rank, samples)
		mean, diagonal, columns := swagMoments(samples, c.rank)
		for draw := range 3 {
			s, err := g.Draw(draw)
			if err != nil {
				t.Fatal(err)
			}
			if s.Chain != 3 || s.Step != 10*c.states+draw || s.Weight != 1 || len(s.Parameters) != 2 ||
				s.Parameters[0].Name != "w.weight" || !s.Parameters[0].Shape.Equal(tensor.Shape{2, 2}) || s.Parameters[1].Name != "w.bias" {
				t.Fatalf("sample %+v", s)
			}
			z := make([]float64, len(mean)+c.rank)
			random.Normals(z, 0, random.Address{Seed: swagSeed, Chain: 3, Step: uint64(s.Step), Stream: random.OrderStream - 1})
			for i, got := range flat(s) {
				want := mean[i] + math.Sqrt(diagonal[i])*z[i]
				if c.rank > 0 {
					want = mean[i] + math.Sqrt(diagonal[i]/2)*z[i]
				}
				for k, column := range columns {
					// The oldest column is in the place that the next will take.
					place := (c.states + k) % c.rank
					want += column[i] * z[len(mean)+place] / math.Sqrt(2*float64(c.rank-1))
				}
				if !(math.Abs(got-want) < 0x1p-23*math.Abs(want)+1e-6) {
					t.Errorf("%+v: draw %d: element %d is %v, want %v", c, draw, i, got, want)
				}
			}
		}
	}
}

// TestSWAGCovariance: the draws have the mean and covariance of N(mean, Sigma/2 + D D'/(2 (K-1))).
func TestSWAGCovariance(t *testing.T) {
	const total = 20000
	for _, rank := range []int{0, 4} {
		samples := trajectory(9)
		g := swag(t, rank, samples)
		mean, diagonal, columns := swagMoments(samples, rank)
		n := len(mean)
		covariance := make([][]float64, n)
		for i := range covariance {
			covariance[i] = make([]float64, n)
			covariance[i][i] = diagonal[i]
			if rank > 0 {
				covariance[i][i] /= 2
			}
			for _, column := range columns {
				for j := range n {
					covariance[i][j] += column[i] * column[j] / (2 * float64(rank-1))
				}
			}
		}
		sums, products := make([]float64, n), make([][]float64, n)
		for i := range products {
			products[i] = make([]float64, n)
		}
		for draw := range total {
			s, err := g.Draw(draw)
			if err != nil {
				t.Fatal(err)
			}
			v := flat(s)
			for i := range v {
				v[i] -= mean[i]
			}
			for i := range v {
				sums[i] += v[i]
				for j := range v {
					products[i][j] += v[i] * v[j]
				}
			}
		}
		for i := range n {
			if z := sums[i] / math.Sqrt(total*covariance[i][i]); !(math.Abs(z) < trial.ZLimit) {
				t.Errorf("rank %d: mean %d: z = %.1f", rank, i, z)
			}
			for j := range n {
				want, spread := covariance[i][j], covariance[i][i]*covariance[j][j]+covariance[i][j]*covariance[i][j]
				if z := (products[i][j]/total - want) * math.Sqrt(total/spread); !(math.Abs(z) < trial.ZLimit) {
					t.Errorf("rank %d: covariance %d, %d: z = %.1f", rank, i, j, z)
				}
			}
		}
	}
}

// TestSWAGOfARun collects the states of a run of SGD at the plan's sample times, separately for
// each chain, and predicts with draws. A chain gives the same draws on its own as with others.
func TestSWAGOfARun(t *testing.T) {
	plan := langevin.Plan{Steps: 40, BurnIn: 10, Thinning: 5}
	drawn := func(first, chains int) map[int][]samples.Sample {
		f := newFit(t, nil, tensor.Float32)
		b := f.builder
		parameters := b.Parameters()
		optimizers.Update(b, optimizers.SGD{}, parameters, b.Gradients(f.loss, parameters...), b.Table("rates", []float64{0.05}))
		b.Record("loss", f.loss)
		session := f.load(t, graph.LoadOptions{Seed: swagSeed, FirstChain: first, Chains: chains}, 2)
		var all []*approximate.SWAG
		for range chains {
			all = append(all, swag(t, 3, nil))
		}
		err := plan.Run(context.Background(), session, 100, func(p langevin.Window) error {
			for chain := 0; p.Sample && chain < chains; chain++ {
				if err := all[chain].Collect(trial.CurrentSample(t, session, chain)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		samples := map[int][]samples.Sample{}
		for chain, g := range all {
			if g.Collected() != plan.Samples() {
				t.Errorf("%d states collected, want %d", g.Collected(), plan.Samples())
			}
			for draw := range 2 {
				s, err := g.Draw(draw)
				if err != nil {
					t.Fatal(err)
				}
				samples[first+chain] = append(samples[first+chain], s)
			}
		}
		return samples
	}
	together, alone := drawn(0, 3), drawn(2, 1)
	if fmt.Sprint(alone[2]) != fmt.Sprint(together[2]) {
		t.Error("chain 2 of a run of one chain differs from chain 2 of several")
	}
	host := tensor.NewHost(1)
	defer host.Close()
	p, err := samples.NewSamplePredictor(host, tensor.Float32, trial.PredictorImages(4), 4, layered)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	seen := map[string]bool{}
	for _, samples := range together {
		for _, s := range samples {
			probabilities := make([]float32, 4*trial.NetworkLabels)
			if err := p.Predict(s, probabilities); err != nil {
				t.Fatal(err)
			}
			seen[fmt.Sprint(probabilities)] = true
		}
	}
	if len(seen) != 6 {
		t.Errorf("%d different predictions, want 6", len(seen))
	}
}

func TestSWAGRefuses(t *testing.T) {
	for _, rank := range []int{-1, 1} {
		if _, err := approximate.NewSWAG(1, rank); err == nil {
			t.Errorf("rank %d: no error", rank)
		}
	}
	for want, change := range map[string]func(s *samples.Sample){
		"chain 4":          func(s *samples.Sample) { s.Chain = 4 },
		"step 20":          func(s *samples.Sample) { s.Step = 20 },
		"1 parameters":     func(s *samples.Sample) { s.Parameters = s.Parameters[:1] },
		"v.bias":           func(s *samples.Sample) { s.Parameters[1].Name = "v.bias" },
		"must be w.weight": func(s *samples.Sample) { s.Parameters[0].Shape = tensor.Shape{4} },
		"must be finite":   func(s *samples.Sample) { s.Parameters[1].Values[2] = float32(math.Inf(1)) },
	} {
		samples := trajectory(4)
		g := swag(t, 2, samples[:2])
		before, err := g.Draw(0)
		if err != nil {
			t.Fatal(err)
		}
		change(&samples[2])
		if err := g.Collect(samples[2]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
		if after, err := g.Draw(0); err != nil || g.Collected() != 2 || fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("%s: what was refused changed the draws (%v)", want, err)
		}
	}
	for _, c := range []struct{ states, rank, draw int }{{0, 0, 0}, {1, 0, 0}, {1, 2, 0}, {4, 5, 0}, {5, 5, -1}, {5, 5, math.MaxInt}} {
		if _, err := swag(t, c.rank, trajectory(c.states)).Draw(c.draw); err == nil {
			t.Errorf("%+v: no error", c)
		}
	}
}
