package cuda

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"
)

// The environment variables below leave features out, to find the one at fault on a GPU that
// computes wrongly, fails or is slow. Open and Predict read them, and WGMMAVariable and
// DependentVariable. docs/cuda.md lists all in one table.
const (
	// CapabilityVariable limits the compute capability that a device assumes: "70", "80" or "90".
	// The device takes the kernels and features of that capability at most.
	CapabilityVariable = "POLLEN_CUDA_CAPABILITY"
	// GraphsVariable has a run launch its calls one after another instead of as CUDA graphs: "off"
	// waits once, at the end of the run; "slow" waits after each launch, like Options.Synchronous.
	GraphsVariable = "POLLEN_CUDA_GRAPHS"
	// OrderVariable set to "off" has each call of a CUDA graph follow the one before it, whatever
	// their data.
	OrderVariable = "POLLEN_CUDA_ORDER"
	// PackedVariable set to "off" leaves out convolutions on packed copies, hence those by wgmma.
	PackedVariable = "POLLEN_CUDA_PACKED"
	// WindowsVariable set to "off" leaves out the kernels that work on pooling windows: gradients
	// of pooled layers are written in full.
	WindowsVariable = "POLLEN_CUDA_WINDOWS"
)

// switches are the features that the environment variables allow.
type switches struct {
	limit     int    // the highest capability assumed, 10 major + minor; 0 for the GPU's own
	graphs    string // "on", "off" or "slow"
	order     bool   // calls of a CUDA graph follow only those whose data they need
	groups    bool   // the kernels of geometry_wgmma.go
	dependent bool   // calls may begin before those that they follow have ended
	packing   bool   // convolutions on packed copies
	windows   bool   // kernels that work on pooling windows
}

// readSwitches reads the environment.
func readSwitches() (s switches, err error) {
	limit, err := oneOf(CapabilityVariable, "", "70", "80", "90")
	if err != nil {
		return s, err
	}
	s.limit, _ = strconv.Atoi(limit) // 0 for ""
	if s.graphs, err = oneOf(GraphsVariable, "on", "off", "slow"); err != nil {
		return s, err
	}
	for _, feature := range []struct {
		variable string
		allowed  *bool
	}{{OrderVariable, &s.order}, {WGMMAVariable, &s.groups}, {DependentVariable, &s.dependent}, {PackedVariable, &s.packing}, {WindowsVariable, &s.windows}} {
		value, err := oneOf(feature.variable, "on", "off")
		if err != nil {
			return s, err
		}
		*feature.allowed = value == "on"
	}
	// Only edges of CUDA graphs let a call begin early.
	s.dependent = s.dependent && s.graphs == "on"
	return s, nil
}

// oneOf returns the value of an environment variable, which must be one of the values. The first is
// the default.
func oneOf(variable string, values ...string) (string, error) {
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
func (s switches) capability(has int) int {
	if s.limit > 0 {
		return min(s.limit, has)
	}
	return has
}
