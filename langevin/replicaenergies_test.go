package langevin_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// TestEnergiesOfMinibatches: energies are computed at the present states and averaged over
// minibatches, which leaves every chain unchanged. Minibatches of one epoch reduce the variance by
// the fraction of the data that they hold; if they are the whole epoch, the energy is exact.
func TestEnergiesOfMinibatches(t *testing.T) {
	const rows, size, first = 40, 8, 1 << 47
	epoch := uint64((first/rows*size + size + 1) * rows / size) // where the first attempt's begins
	for _, c := range []struct {
		n, batch int
		first    uint64
		left     float64 // of the variance
	}{{6, 0, first + 6, 1}, {3, size, epoch, 1 - 3*size/40.}, {5, size, epoch, 0}} {
		t.Run(fmt.Sprint(c.n), func(t *testing.T) {
			checkEnergies(t, newTable(rows, 2, size, op.Shuffled, true), c.n, c.batch, c.first, c.left)
		})
	}
}

func checkEnergies(t *testing.T, d table, n, batch int, first uint64, left float64) {
	const ladders = 40
	temperatures, correction := []float64{1, 1.6}, 2.0
	b := graph.New(tensor.Float64)
	posterior := langevin.Posterior{DataSize: d.rows, Prior: langevin.Gaussian(2)}
	exchange := langevin.ReplicaExchange{Temperatures: temperatures, Every: 3, Minibatches: n, Correction: correction, BatchSize: batch}
	replicas, err := exchange.Attach(b, langevin.SGLD{}, posterior, d.loss(b), []float64{0.02})
	if err != nil {
		t.Fatal(err)
	}
	session := trial.Load(t, b, graph.LoadOptions{Seed: trial.RunSeed, Chains: 2 * ladders}, 1)
	trial.Advance(t, session, 3)
	kept := map[int][]float64{}
	for chain := range 2 * ladders {
		kept[chain] = trial.Values(t, session, trial.ParameterName, chain, 2)
	}
	if err := replicas.OnStep(context.Background(), session); err != nil {
		t.Fatal(err)
	}
	cold, err := replicas.Cold(session)
	if err != nil {
		t.Fatal(err)
	}
	swapped, equal := 0, 0
	for i := range ladders {
		var mean, variance [2]float64
		for j := range 2 {
			w := trial.Values(t, session, trial.ParameterName, 2*i+j, 2)
			if !slices.Equal(w, kept[2*i+j]) {
				t.Fatalf("chain %d was moved", 2*i+j)
			}
			mean[j], variance[j] = d.energy(w, posterior.Prior, uint32(2*i+j), first, n)
			variance[j] *= left
			if whole := d.potential(w, posterior.Prior); left == 0 && !(math.Abs(mean[j]-whole) < 1e-9*math.Abs(whole)) {
				t.Fatalf("the energy of all minibatches is %v, of all data %v", mean[j], whole)
			}
		}
		delta := 1/temperatures[0] - 1/temperatures[1]
		probability := math.Exp(delta * (mean[0] - mean[1] - delta*(variance[0]+variance[1])/2/correction))
		var words [2]uint32
		random.Bits(words[:], 0, random.Address{Seed: trial.RunSeed, Chain: uint32(2 * i), Step: 3, Stream: random.OrderStream - 2})
		want := float64(words[0])/(1<<32)+float64(words[1]>>11)/(1<<53) < probability
		if (cold[i] == 2*i+1) != want {
			t.Errorf("ladder %d swaps: %v, want %v, by a probability of %v", i, cold[i] == 2*i+1, want, probability)
		}
		if want {
			swapped++
		} else {
			equal++
		}
	}
	if session.Steps() != 3 || swapped < 5 || equal < 3 {
		t.Errorf("after step %d: %d swaps, and %d times none", session.Steps(), swapped, equal)
	}
	trial.Advance(t, session, 1)
}

// potential is U of all data.
func (d table) potential(w []float64, prior langevin.Prior) float64 {
	u := 0.0
	for row := range d.rows {
		p := w[0]*d.x[2*row] + w[1]*d.x[2*row+1]
		u += math.Log1p(math.Exp(p)) - d.y[row]*p
	}
	for _, v := range w {
		u -= prior.LogDensity(v)
	}
	return u
}

// energy is the mean of U over minibatches of a chain, from step first's on, and the estimate of
// its variance.
func (d table) energy(w []float64, prior langevin.Prior, chain uint32, first uint64, n int) (mean, variance float64) {
	var all []float64
	for i := range n {
		u := 0.0
		for j := range d.batch.Size {
			position := (first+uint64(i))*uint64(d.batch.Size) + uint64(j)
			row := random.Permute(position%uint64(d.rows), uint64(d.rows), trial.RunSeed, chain, position/uint64(d.rows))
			p := w[0]*d.x[2*row] + w[1]*d.x[2*row+1]
			u += float64(d.rows) / float64(d.batch.Size) * (math.Log1p(math.Exp(p)) - d.y[row]*p)
		}
		for _, v := range w {
			u -= prior.LogDensity(v)
		}
		all = append(all, u)
		mean += u / float64(n)
	}
	for _, u := range all {
		variance += (u - mean) * (u - mean) / float64(n*(n-1))
	}
	return mean, variance
}
