// Command regression samples the posterior of a straight line's intercept and slope with SGLD,
// MALA, HMC and NUTS, and compares means, standard deviations and correlation with their exact
// values.
//
// It is the place to begin: it builds a graph, attaches a sampler to its loss, and runs 16 chains
// in one session. It prints one row for each sampler with its effective number of draws. All agree
// with the exact row within Monte Carlo error; SGLD's standard deviations also have a small bias
// from its step size. regression.png has the draws of one chain of SGLD and one of HMC. It takes
// some seconds.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/mcmc"
	"github.com/pollen-ml/pollen/report"
	"github.com/pollen-ml/pollen/tensor"
)

var posterior = langevin.Posterior{DataSize: size, Prior: langevin.Gaussian(1)}

func main() {
	dir := flag.String("folder", ".", "directory for regression.png")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "regression: takes flags only, got %q\n", flag.Arg(0))
		os.Exit(2)
	}
	if err := run(os.Stdout, *dir, 16, 1000); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// model adds the parameters, intercept and slope, and the mean negative log-likelihood to a graph.
// The squared error over noise^2 is the negative log-likelihood up to a constant.
func model(b *graph.Builder) (theta, loss *graph.Node) {
	features, targets := observations()
	theta = b.Parameter("theta", nil, 2, 1)
	x, y := b.Table("features", features, size, 2), b.Table("targets", targets, size, 1)
	loss = b.Apply(op.SquaredError{}, b.Apply(op.MatMul{}, x, theta), y)
	return theta, b.Apply(op.Scale{Factor: 1 / (noise * noise)}, loss)
}

// traces has the draws of theta_0 and theta_1, each [chains draws].
type traces [2][][]float64

func tracesOf(drawn *langevin.Traces) (t traces, err error) {
	for i := range t {
		if t[i], err = drawn.Of("theta", i); err != nil {
			return t, err
		}
	}
	return t, nil
}

// sgld samples with SGLD, one draw of each chain every 20 steps. In a direction of curvature k the
// variance is too large by a fraction of about h k/2.
func sgld(chains, draws int) (kept traces, err error) {
	const stepSize, spacing, burnIn = 2e-4, 20, 1000
	b := graph.New(tensor.Float64)
	_, loss := model(b)
	steps := burnIn + spacing*draws
	err = langevin.Attach(b, langevin.SGLD{}, posterior, loss, []float64{stepSize}, []float64{1})
	if err != nil {
		return kept, err
	}
	err = b.OnHost(graph.LoadOptions{Seed: 1, Chains: chains}, func(session *graph.Session) error {
		plan := langevin.Plan{Steps: steps, BurnIn: burnIn, Thinning: spacing}
		drawn, err := plan.Collect(context.Background(), session, []string{"theta"})
		if err != nil {
			return err
		}
		kept, err = tracesOf(drawn)
		return err
	})
	return kept, err
}

// unbiased samples with a sampler that has a Metropolis test and so no discretisation bias. It
// needs the potential in float64 and the quantities to trace.
func unbiased(sampler mcmc.Sampler, chains, draws, thinning int) (kept traces, err error) {
	b := graph.New(tensor.Float64)
	theta, loss := model(b)
	target := mcmc.Target{Potential: posterior.Potential(b, loss), Temperature: 1, Quantities: []mcmc.Quantity{{Name: "theta", Node: theta}}}
	walk, err := sampler.Attach(b, target)
	if err != nil {
		return kept, err
	}
	err = b.OnHost(graph.LoadOptions{Seed: 1, Chains: chains}, func(session *graph.Session) error {
		drawn, err := walk.Sample(context.Background(), session, draws, thinning)
		if err != nil {
			return err
		}
		kept, err = tracesOf(drawn)
		return err
	})
	return kept, err
}

// method is a sampler with the traces it drew.
type method struct {
	name string
	traces
}

// sampleAll draws with every sampler.
func sampleAll(chains, draws int) ([]method, error) {
	drawn, err := sgld(chains, draws)
	methods := []method{{langevin.SGLD{}.Name(), drawn}}
	for _, m := range []struct {
		sampler  mcmc.Sampler
		thinning int
	}{
		{mcmc.Metropolis{Proposal: mcmc.MALA{}, StepSize: 1e-3, Warmup: 500}, 10},
		{mcmc.Metropolis{Proposal: mcmc.HMC{LeapfrogSteps: 8, Jitter: 0.2}, StepSize: 0.05, Warmup: 500}, 1},
		{mcmc.NUTS{Warmup: 500}, 1},
	} {
		if err != nil {
			return nil, err
		}
		drawn, err = unbiased(m.sampler, chains, draws, m.thinning)
		methods = append(methods, method{m.sampler.Name(), drawn})
	}
	return methods, err
}

func run(out io.Writer, dir string, chains, draws int) error {
	methods, err := sampleAll(chains, draws)
	if err != nil {
		return err
	}
	columns := []report.Column{{Title: "effective draws", Format: "%.0f"}}
	for _, title := range []string{"E[theta0]", "E[theta1]", "sd(theta0)", "sd(theta1)", "correlation"} {
		columns = append(columns, report.Column{Title: title, Format: "%.4f"})
	}
	table := report.NewTable("", columns...)
	want := exact()
	if err := table.Add("exact", "-", want.mean0, want.mean1, want.deviation0, want.deviation1, want.correlation); err != nil {
		return err
	}
	var tracks []report.Track
	for _, m := range methods {
		effective, _, err := diagnostics.EffectiveSampleSize(m.traces[0])
		if err != nil {
			return err
		}
		got := m.moments()
		if err := table.Add(m.name, effective, got.mean0, got.mean1, got.deviation0, got.deviation1, got.correlation); err != nil {
			return err
		}
		tracks = append(tracks, report.Track{Method: m.name, X: m.traces[0][0], Y: m.traces[1][0]})
	}
	if err := table.WriteText(out); err != nil {
		return err
	}
	figure, err := report.Plane("theta0, intercept", "theta1, slope", []report.Levels{want.density()}, []report.Track{tracks[0], tracks[2]})
	if err != nil {
		return err
	}
	return figure.Save(filepath.Join(dir, "regression.png"))
}
