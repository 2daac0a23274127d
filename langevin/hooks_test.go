package langevin_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// method is a way to run a sampler that takes more than Attach and a plan: this file tests that its
// bits are reproducible.
type method struct {
	name   string
	attach attachment
	plan   langevin.Plan
	ladder int // chains that belong together
}

type attachment func(t *testing.T, b *graph.Builder, posterior langevin.Posterior, loss *graph.Node) langevin.Hook

const methodSteps = 14

func methods() []method {
	steps := []float64{1e-3, 2e-3, 5e-4}
	replicas := func(sampler langevin.Sampler, exchange langevin.ReplicaExchange) attachment {
		return func(t *testing.T, b *graph.Builder, posterior langevin.Posterior, loss *graph.Node) langevin.Hook {
			r, err := exchange.Attach(b, sampler, posterior, loss, steps)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
	}
	anchored := func(sampler langevin.Sampler, refresh int) attachment {
		return func(t *testing.T, b *graph.Builder, posterior langevin.Posterior, loss *graph.Node) langevin.Hook {
			variates := langevin.ControlVariates{BatchSize: 15, Refresh: refresh}
			anchor, err := variates.Attach(b, sampler, posterior, loss, steps, []float64{1, 0.5, 1})
			if err != nil {
				t.Fatal(err)
			}
			return anchor
		}
	}
	frozen := langevin.PSGLD{Alpha: 0.6, Lambda: 0.05, Gamma: langevin.GammaFrozen, FreezeAt: 4}
	plain := langevin.Plan{Steps: methodSteps, BurnIn: 3, Thinning: 5}
	cyclical := langevin.Plan{Steps: methodSteps, BurnIn: 2, Thinning: 3, Cycles: 2}
	return []method{
		{"cyclical", func(t *testing.T, b *graph.Builder, posterior langevin.Posterior, loss *graph.Node) langevin.Hook {
			sampler := langevin.SGHMC{Friction: 0.3}
			temperatures, err := cyclical.Temperatures(sampler, 1)
			if err != nil {
				t.Fatal(err)
			}
			table := make([]float64, methodSteps)
			for i := range table {
				table[i] = 1e-3 / float64(1+i%7)
			}
			if err := langevin.Attach(b, sampler, posterior, loss, table, temperatures); err != nil {
				t.Fatal(err)
			}
			return nil
		}, cyclical, 1},
		{"replica exchange", replicas(langevin.SGLD{}, langevin.ReplicaExchange{
			Temperatures: []float64{1, 1.1}, StepFactors: []float64{1, 2}, Every: 2, Minibatches: 3, Correction: 4,
		}), plain, 2},
		{"replica exchange of PSGLD", replicas(frozen, langevin.ReplicaExchange{Temperatures: []float64{1, 1.01, 1.02, 1.03}, Every: 1, Minibatches: 1}), plain, 4},
		{"control variates", anchored(langevin.SGLD{}, 0), plain, 1},
		{"SVRG with SGHMC", anchored(langevin.SGHMC{Friction: 0.3}, 4), plain, 1},
		{"SVRG with PSGLD", anchored(frozen, 5), plain, 1},
	}
}

// load is the network of classifier, run by a method.
func (m method) load(t *testing.T, o graph.LoadOptions, threads int) (*graph.Session, []langevin.Hook) {
	t.Helper()
	b := graph.New(tensor.Float32)
	images := tensor.Shape{trial.TrainingImages, trial.ImageChannels, trial.ImageHeight, trial.ImageWidth}
	x, labels := op.Minibatch(b, op.Batch{Size: 15, Order: op.Shuffled}, images, []float64{trial.ImageMean}, []float64{trial.ImageSpread})
	posterior := langevin.Posterior{DataSize: trial.TrainingImages, Prior: langevin.Gaussian(1)}
	var hooks []langevin.Hook
	if i := m.attach(t, b, posterior, b.Apply(op.CrossEntropy{}, trial.Network(b, x), labels)); i != nil {
		hooks = append(hooks, i)
	}
	session := trial.Load(t, b, o, threads)
	if err := graph.Write(session, "images", 0, 0, trial.SomeBytes(trial.TrainingImages*trial.ImageSize, 256, 1)); err != nil {
		t.Fatal(err)
	}
	if err := graph.Write(session, "labels", 0, 0, trial.SomeLabels(trial.TrainingImages, 2)); err != nil {
		t.Fatal(err)
	}
	return session, hooks
}

// sample runs the plan from the session's present step, and adds all chains' states to a store.
func (m method) sample(t *testing.T, s *graph.Session, hooks []langevin.Hook, most int) map[string][]byte {
	t.Helper()
	store, dir := trial.NewStore(t)
	err := m.plan.Run(context.Background(), s, most, func(p langevin.Window) error {
		for chain := 0; p.Sample && chain < s.Chains(); chain++ {
			sample, err := samples.FromSession(s, chain, 1)
			if err == nil {
				err = store.Add(sample)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}, hooks...)
	if err != nil {
		t.Fatal(err)
	}
	return trial.Contents(t, dir)
}

// TestMethodsSameBits: a method's samples do not depend on threads, on windows, on which other
// chains there are, or on an interruption at any step.
func TestMethodsSameBits(t *testing.T) {
	const chains = 8
	for _, m := range methods() {
		t.Run(m.name, func(t *testing.T) {
			session, hooks := m.load(t, graph.LoadOptions{Seed: 3, Chains: chains}, 2)
			want := m.sample(t, session, hooks, 100)
			if len(want) != chains*m.plan.Samples() || m.plan.Samples() < 2 {
				t.Fatalf("%d files, want %d", len(want), chains*m.plan.Samples())
			}
			trial.CheckDifferent(t, want)
			check := func(name string, got map[string][]byte) {
				t.Helper()
				for file := range got {
					if !bytes.Equal(got[file], want[file]) {
						t.Errorf("%s: %s differs", name, file)
					}
				}
			}
			session, hooks = m.load(t, graph.LoadOptions{Seed: 3, Chains: chains}, 3)
			check("one step at a time on three threads", m.sample(t, session, hooks, 1))
			session, hooks = m.load(t, graph.LoadOptions{Seed: 3, Chains: m.ladder, FirstChain: m.ladder}, 1)
			check("a chain, or a ladder, on its own", m.sample(t, session, hooks, 100))
			for _, at := range []int{1, 4, 5, 10} {
				check("interrupted and resumed", m.resume(t, at, chains))
			}
		})
	}
}

// resume runs to a step, and continues from there in another session.
func (m method) resume(t *testing.T, at, chains int) map[string][]byte {
	t.Helper()
	first, hooks := m.load(t, graph.LoadOptions{Seed: 3, Chains: chains}, 2)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	err := m.plan.Run(ctx, first, 1, func(p langevin.Window) error {
		if p.To == at {
			cancel()
		}
		return nil
	}, hooks...)
	if err == nil || int(first.Steps()) != at {
		t.Fatalf("error %v after %d steps, want the context's after %d", err, first.Steps(), at)
	}
	second, hooks := m.load(t, graph.LoadOptions{Seed: 4, FirstChain: 48, Chains: chains}, 1)
	for chain := range chains {
		state := make([]byte, first.ChainBytes())
		if err := first.Save(chain, state); err != nil {
			t.Fatal(err)
		}
		if err := second.Restore(chain, state, uint64(at)); err != nil {
			t.Fatal(err)
		}
	}
	return m.sample(t, second, hooks, 3)
}
