package trial

import (
	"math"
	"os"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/cuda/cudatest"
)

// reductions has, for each statistical test, the fractions of its chains and steps that run on the
// emulated GPU. A step of one chain takes some 0.1 ms there, and 1 ms with a thousand elements:
// about a thousand times as long as on a GPU. Such tests leave out repetitions, too. Tests are
// reduced nowhere else.
//
// Expectations are exact at any number of chains and steps, and tolerances are standard errors for
// that number, so that a correct sampler passes as elsewhere. Some wrong theories cannot be
// distinguished in so few steps: Underpowered leaves these out, but never one that is wrong by a
// factor of 2 in the drift or in the noise.
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

// ZLimit is the number of standard errors by which an average may be off.
const ZLimit = 4.5

// OnEmulator reports whether the device of the tests is the emulated GPU.
func OnEmulator() bool {
	device := os.Getenv(cudatest.Variable)
	return device == cudatest.Emulator || device == cudatest.PTX
}

// ChainsOf returns the test's number of chains, reduced on the emulated GPU.
func ChainsOf(t testing.TB, chains int) int {
	return reduced(chains, reductions[root(t)].chains)
}

// StepsOf returns the test's number of steps or draws, reduced on the emulated GPU.
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

// Underpowered reports whether the chains and steps on the emulated GPU cannot distinguish a wrong
// theory from the right one. foreseen is the z score that the wrong theory is expected to have.
func Underpowered(foreseen float64) bool { return OnEmulator() && foreseen < ZLimit+3 }

// SameBits reports whether two numbers are equal: bit for bit on the host, on a GPU up to the
// rounding of functions such as exp.
func SameBits(a, b float64) bool {
	if device := os.Getenv(cudatest.Variable); device == "" || device == cudatest.CPU {
		return math.Float64bits(a) == math.Float64bits(b)
	}
	return math.Abs(a-b) <= 1e-10*(1+math.Abs(b))
}
