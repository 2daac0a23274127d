package trial

import (
	"math"
	"os"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/cuda/cudatest"
)

// On the emulated GPU a step takes a chain some 0.1 ms, and one of a thousand elements 1 ms: about
// a thousand times as long as on a GPU. There the statistical tests run these shares of their
// chains and steps, and leave out repetitions; this is the only place that says so. Expectations
// are exact at any number of chains and steps, and tolerances are standard errors for that number,
// so that what is right passes as elsewhere. Of what is wrong, Powerless leaves out what so few
// steps cannot distinguish from it; a factor of 2 in the drift or in the noise is never left out.
var reductions = map[string]struct{ chains, steps float64 }{
	"TestStationaryMoments":        {1. / 15, 1},
	"TestShapes":                   {1, 1. / 8},
	"TestMomentumShapes":           {1, 1. / 8},
	"TestPreconditioningEvensOut":  {1, 1. / 8},
	"TestGamma":                    {1. / 4, 4. / 7},
	"TestGammaNone":                {1, 1. / 4},
	"TestSGNHTTemperatures":        {1, 1. / 8},
	"TestSGNHTPerElement":          {1, 1. / 8},
	"TestCCAdLTemperatures":        {1, 1. / 8},
	"TestCCAdLAtRealSteps":         {1, 1. / 2},
	"TestCCAdLCommonNoise":         {1, 1. / 3},
	"TestSMILETemperatures":        {1, 1. / 8},
	"TestSMILEAtRealSteps":         {1, 1. / 2},
	"TestSMILEInFewDimensions":     {1. / 2, 1. / 8},
	"TestKSGLDMoments":             {1. / 20, 1},
	"TestControlVariatesMoments":   {1. / 10, 1},
	"TestReplicasCross":            {1. / 5, 1. / 3},
	"TestSwaps":                    {1. / 5, 1},
	"TestConjugate":                {1. / 12, 1. / 3},
	"TestDivergence":               {1, 1. / 8},
	"TestMetropolisMoments":        {1. / 3, 1. / 8},
	"TestCorrelated":               {1. / 2, 1. / 4},
	"TestIllConditioned":           {1. / 2, 1. / 3},
	"TestThousandDimensions":       {1. / 2, 1},
	"TestEdgeOfSupport":            {1. / 2, 1. / 4},
	"TestMixtureCoverage":          {1. / 2, 1. / 8},
	"TestNUTSMoments":              {1. / 4, 1. / 4},
	"TestNUTSPlane":                {1. / 2, 1. / 4},
	"TestBayesianLinearRegression": {1, 1. / 8},
	"TestMALAOnMinibatch":          {1. / 2, 1. / 2},
}

// ZLimit is how many standard errors an average may be off.
const ZLimit = 4.5

// OnEmulator reports whether the tests' device is the emulated GPU.
func OnEmulator() bool {
	device := os.Getenv(cudatest.Variable)
	return device == cudatest.Emulator || device == cudatest.PTX
}

// ChainsOf is how many of a test's chains are run.
func ChainsOf(t testing.TB, chains int) int {
	return reduced(chains, reductions[root(t)].chains)
}

// StepsOf is how many of a test's steps, or draws, are made.
func StepsOf(t testing.TB, steps int) int {
	return reduced(steps, reductions[root(t)].steps)
}

func root(t testing.TB) string {
	name, _, _ := strings.Cut(t.Name(), "/")
	return name
}

func reduced(n int, share float64) int {
	if !OnEmulator() || share == 0 {
		return n
	}
	return max(1, int(math.Round(share*float64(n))))
}

// Underpowered reports whether a wrong theory, whose z is foreseen, is too close to the right one for
// the emulated GPU's chains and steps.
func Underpowered(foreseen float64) bool { return OnEmulator() && foreseen < ZLimit+3 }

// SameBits reports whether two numbers are the same: bit for bit on the host, on a GPU up to the
// rounding of functions such as exp.
func SameBits(a, b float64) bool {
	if device := os.Getenv(cudatest.Variable); device == "" || device == cudatest.CPU {
		return math.Float64bits(a) == math.Float64bits(b)
	}
	return math.Abs(a-b) <= 1e-10*(1+math.Abs(b))
}
