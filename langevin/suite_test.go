package langevin_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/optimizers"
)

// row is a sampler with its expected properties. To test a new sampler, add its row: every test
// over rows then covers it.
type row struct {
	name string
	// sampler has attributes at which every term of the rule matters within ten steps.
	sampler langevin.Sampler
	// rule is the documented formula; wrong rules differ in one term, which the tests must notice.
	// Nil when elements depend on each other: the sampler then has a test of its own.
	rule  rule
	wrong map[string]rule
	// still is the variance, in units of 2 h T, of a first step without a gradient; 0 when the step
	// size and T do not simply scale it.
	still float64
	// plain is the optimizer to which the rule is equal at temperature 0, from the second step on
	// when their first states differ; nil when there is none.
	plain  func(weightDecay float64) optimizers.Optimizer
	states []string
	// If the rule at temperature 0 is Momentum up to rounding, decay is its decay c, and pace its
	// rate over h N; 0 stands for (1 + c)/2. Otherwise decay is 0.
	decay, pace float64

	// inertia is set when the noise of a step also moves the next steps.
	inertia bool

	// sampling has attributes to sample with, nil when no theory is known. From step settled on, an
	// element moves with the step size h G, where preconditioner reads G from the session; expected
	// is about G when the gradient of U/N has that root mean square. On a quadratic potential theta
	// is then the process chain; on any, when euler is set, the rule is Euler's.
	sampling       langevin.Sampler
	settled        int
	preconditioner func(t testing.TB, s *graph.Session, chain, n int) []float64
	expected       func(gradient float64) float64
	chain          func(step, curvature, temperature, noise float64) process
	euler          bool
}

func rows() []row {
	none := langevin.PSGLD{Alpha: 0.6, Lambda: 0.05, Gamma: langevin.GammaNone}
	frozen := langevin.PSGLD{Alpha: 0.6, Lambda: 0.05, Gamma: langevin.GammaFrozen, FreezeAt: 4}
	sampling := langevin.PSGLD{Alpha: 0.99, Lambda: 1e-3, Gamma: langevin.GammaFrozen, FreezeAt: 200}
	// The suite's potentials are quadratic, so that a large distance causes no error.
	curved := langevin.PSGLD{Alpha: 0.6, Lambda: 0.05, Gamma: langevin.GammaHutchinson, Distance: 0.25}
	return append([]row{
		{
			name: "SGLD", sampler: langevin.SGLD{}, rule: sgldRule, still: 1,
			wrong: map[string]rule{
				"half the variance of the noise": func(e element) float64 { return e.theta - e.h*e.n*e.g + math.Sqrt(e.h*e.temperature)*e.xi },
				"half the drift":                 func(e element) float64 { return e.theta - e.h/2*e.n*e.g + math.Sqrt(2*e.h*e.temperature)*e.xi },
				"no N in the drift":              func(e element) float64 { return e.theta - e.h*e.g + math.Sqrt(2*e.h*e.temperature)*e.xi },
				"N in the noise":                 func(e element) float64 { return e.theta - e.h*e.n*e.g + math.Sqrt(2*e.h*e.n*e.temperature)*e.xi },
				"up the gradient":                func(e element) float64 { return e.theta + e.h*e.n*e.g + math.Sqrt(2*e.h*e.temperature)*e.xi },
			},
			plain:    func(decay float64) optimizers.Optimizer { return optimizers.SGD{WeightDecay: decay} },
			sampling: langevin.SGLD{}, chain: euler, euler: true,
			preconditioner: ones,
			expected:       func(float64) float64 { return 1 },
		},
		{
			name: "PSGLD, Gamma none", sampler: none, rule: psgldRule(none), still: 1 / none.Lambda, wrong: wrongPSGLD(none),
			plain: func(decay float64) optimizers.Optimizer {
				return optimizers.RMSProp{Decay: none.Alpha, Epsilon: none.Lambda, WeightDecay: decay}
			},
			states: []string{secondMoment},
		},
		{
			name: "PSGLD, Gamma frozen", sampler: frozen, rule: psgldRule(frozen), still: 1 / frozen.Lambda, wrong: wrongPSGLD(frozen),
			sampling: sampling, chain: euler, euler: true,
			settled: sampling.FreezeAt,
			preconditioner: func(t testing.TB, s *graph.Session, chain, n int) []float64 {
				return frozenPreconditioner(t, s, chain, n, sampling.Lambda)
			},
			expected: func(gradient float64) float64 { return 1 / (sampling.Lambda + gradient) },
		},
		{
			name: "PSGLD, Gamma hutchinson", sampler: curved, rule: curvedRule(curved), still: 1 / curved.Lambda, wrong: wrongGamma(curved),
			plain: func(decay float64) optimizers.Optimizer {
				return optimizers.RMSProp{Decay: curved.Alpha, Epsilon: curved.Lambda, WeightDecay: decay}
			},
			states: []string{secondMoment},
		},
		fisherRow(),
		ksgldRow(),
	}, momentumRows()...)
}

// element is one element of a parameter before a step.
type element struct {
	step              int
	theta             float64
	g                 float64 // gradient of U/N
	h, temperature, n float64
	curvature         float64  // the derivative of g by theta
	xi, start         float64  // of the first and the second stream that the parameter's update took
	memory, chi       *float64 // what the rule keeps from step to step, 0 at first
}

// rule is a sampler's formula in float64: theta after the step.
type rule func(e element) float64

func sgldRule(e element) float64 {
	return e.theta - e.h*e.n*e.g + math.Sqrt(2*e.h*e.temperature)*e.xi
}

func psgldRule(p langevin.PSGLD) rule {
	return func(e element) float64 {
		g := 1 / (p.Lambda + math.Sqrt(adaptedV(p, e)))
		return e.theta - e.h*g*e.n*e.g + math.Sqrt(2*e.h*e.temperature*g)*e.xi
	}
}

func adaptedV(p langevin.PSGLD, e element) float64 {
	if p.Gamma != langevin.GammaFrozen || e.step < p.FreezeAt {
		keep := adaptedShare(p, e)
		*e.memory = keep**e.memory + (1-keep)*e.g*e.g
	}
	return *e.memory
}

// adaptedShare returns the fraction of V that a step keeps: at first V is the mean of all squares.
func adaptedShare(p langevin.PSGLD, e element) float64 {
	return min(p.Alpha, 1-1/float64(e.step+1))
}

func wrongPSGLD(p langevin.PSGLD) map[string]rule {
	step := func(g, noise func(v float64) float64) rule {
		return func(e element) float64 {
			v := adaptedV(p, e)
			return e.theta - e.h*g(v)*e.n*e.g + math.Sqrt(2*e.h*e.temperature*noise(v))*e.xi
		}
	}
	right := func(v float64) float64 { return 1 / (p.Lambda + math.Sqrt(v)) }
	one := func(float64) float64 { return 1 }
	square := func(v float64) float64 { return right(v) * right(v) }
	under := func(v float64) float64 { return 1 / math.Sqrt(p.Lambda*p.Lambda+v) }
	wrong := map[string]rule{
		"no G in the noise":     step(right, one),
		"G^2 in the noise":      step(right, square),
		"no G in the drift":     step(one, right),
		"Lambda under the root": step(under, under),
		"V from 0": func(e element) float64 {
			e.step++
			return psgldRule(p)(e)
		},
		"V of the gradient of U": func(e element) float64 {
			e.g *= e.n
			e.n = 1
			return psgldRule(p)(e)
		},
	}
	if p.Gamma == langevin.GammaFrozen {
		never, late, early := p, p, p
		never.Gamma = langevin.GammaNone
		late.FreezeAt++
		early.FreezeAt--
		wrong["never frozen"], wrong["frozen late"], wrong["frozen early"] = psgldRule(never), psgldRule(late), psgldRule(early)
	}
	return wrong
}

const secondMoment = ".second moment"

func ones(_ testing.TB, _ *graph.Session, _, n int) []float64 {
	g := make([]float64, n)
	for i := range g {
		g[i] = 1
	}
	return g
}

// frozenPreconditioner computes G from the V that PSGLD has frozen.
func frozenPreconditioner(t testing.TB, s *graph.Session, chain, n int, lambda float64) []float64 {
	g := trial.Values(t, s, trial.ParameterName+secondMoment, chain, n)
	for i, v := range g {
		g[i] = 1 / (lambda + math.Sqrt(v))
	}
	return g
}

// TestEverySamplerHasARow: the exported types of the package with a method Update. MatchedFriction
// measures its friction while it runs, and has tests of its own.
func TestEverySamplerHasARow(t *testing.T) {
	inSuite := map[string]bool{reflect.TypeOf(langevin.MatchedFriction{}).Name(): true}
	for _, row := range rows() {
		inSuite[reflect.TypeOf(row.sampler).Name()] = true
	}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	samplers := 0
	for _, entry := range files {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), entry.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			method, ok := d.(*ast.FuncDecl)
			if !ok || method.Recv == nil || method.Name.Name != "Update" {
				continue
			}
			receiver, ok := method.Recv.List[0].Type.(*ast.Ident)
			if !ok || !receiver.IsExported() {
				continue
			}
			samplers++
			if !inSuite[receiver.Name] {
				t.Errorf("%s: sampler %s has no row in the suite", entry.Name(), receiver.Name)
			}
		}
	}
	if samplers < 10 {
		t.Errorf("found %d samplers: most are missing", samplers)
	}
}
