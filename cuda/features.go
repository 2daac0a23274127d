package cuda

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/cuda/internal/plan"
)

// These environment variables leave features out, to find the one at fault on a GPU that computes
// wrongly, fails or is slow. Open and Predict read them. docs/cuda.md lists all in one table.
const (
	// AheadVariable set to "off" makes the calls that gather a minibatch wait until the preceding
	// step has ended.
	AheadVariable = "POLLEN_CUDA_AHEAD"
	// CapabilityVariable limits the compute capability that a device assumes: "70", "80" or "90".
	CapabilityVariable = "POLLEN_CUDA_CAPABILITY"
	// GraphsVariable makes a run launch its calls one after another instead of as CUDA graphs.
	// "off" waits once, at the end of the run. "slow" waits after each call, like
	// Options.Synchronous.
	GraphsVariable = "POLLEN_CUDA_GRAPHS"
	// OrderVariable set to "off" makes each call of a CUDA graph follow the one before it, even if
	// their data do not require that.
	OrderVariable = "POLLEN_CUDA_ORDER"
	// PackedVariable set to "off" leaves out convolutions on packed copies, and so also wgmma.
	PackedVariable = "POLLEN_CUDA_PACKED"
	// PDLVariable set to "off" leaves out programmatic dependent launch: every call then begins
	// after those that it follows have ended.
	PDLVariable = "POLLEN_CUDA_PDL"
	// PixelsVariable set to "off" computes 1 x 1 convolutions with the kernels of larger ones,
	// instead of as products of matrices.
	PixelsVariable = "POLLEN_CUDA_PIXELS"
	// RoundedVariable set to "off" leaves out the products of matrices in bf16 that round their
	// operands once.
	RoundedVariable = "POLLEN_CUDA_ROUNDED"
	// WGMMAVariable set to "off" leaves out the kernels that use wgmma.
	WGMMAVariable = "POLLEN_CUDA_WGMMA"
	// WindowsVariable set to "off" leaves out the kernels that work on pooling windows: gradients
	// of pooled layers are written in full.
	WindowsVariable = "POLLEN_CUDA_WINDOWS"
)

// features holds what the environment variables allow.
type features struct {
	maxCapability int    // the highest capability that is assumed, 10 major + minor; 0 means the GPU's
	graphs        string // "on", "off" or "slow"
	reordering    bool   // calls of a CUDA graph wait only for the calls whose data they need
	wgmma         bool   // convolutions by wgmma
	pdl           bool   // programmatic dependent launch
	packing       bool   // convolutions on packed copies
	windows       bool   // kernels that work on pooling windows
	pixels        bool   // 1 x 1 convolutions as products of matrices
	rounding      bool   // products that round their operands once
	ahead         bool   // calls may run before the preceding step has ended
}

// readFeatures reads the environment variables.
func readFeatures() (s features, err error) {
	limit, err := envOneOf(CapabilityVariable, "", "70", "80", "90")
	if err != nil {
		return s, err
	}
	s.maxCapability, _ = strconv.Atoi(limit) // 0 for ""
	if s.graphs, err = envOneOf(GraphsVariable, "on", "off", "slow"); err != nil {
		return s, err
	}
	for _, feature := range []struct {
		variable string
		allowed  *bool
	}{
		{AheadVariable, &s.ahead}, {OrderVariable, &s.reordering}, {WGMMAVariable, &s.wgmma}, {PDLVariable, &s.pdl}, {PackedVariable, &s.packing},
		{WindowsVariable, &s.windows}, {PixelsVariable, &s.pixels}, {RoundedVariable, &s.rounding},
	} {
		value, err := envOneOf(feature.variable, "on", "off")
		if err != nil {
			return s, err
		}
		*feature.allowed = value == "on"
	}
	// Programmatic edges exist only in CUDA graphs.
	s.pdl = s.pdl && s.graphs == "on"
	return s, nil
}

// target returns what a workload is planned for, with these features, on a GPU of the given
// capability.
func (s features) target(precision Precision, capability, multiprocessors, shared, chains int) plan.Target {
	return plan.Target{
		Precision: precision, Multiprocessors: multiprocessors, Capability: capability, Chains: chains, Shared: shared,
		WGMMA: s.wgmma && capability == plan.SM90, NoPacking: !s.packing, NoWindows: !s.windows, NoPixels: !s.pixels, NoRounding: !s.rounding,
	}
}

// envOneOf returns the value of an environment variable, which must be one of values. The first of
// them is the default.
func envOneOf(variable string, values ...string) (string, error) {
	value := os.Getenv(variable)
	if value == "" {
		return values[0], nil
	}
	if !slices.Contains(values, value) {
		allowed := slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == "" })
		last := len(allowed) - 1
		return "", errors.Errorf("cuda: %s must be %s or %s, got %q", variable, strings.Join(allowed[:last], ", "), allowed[last], value)
	}
	return value, nil
}

// capability returns the compute capability to assume for a GPU that has the given one.
func (s features) capability(has int) int {
	if s.maxCapability > 0 {
		return min(s.maxCapability, has)
	}
	return has
}
