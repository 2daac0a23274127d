package cuda

import (
	"strings"

	"github.com/pollen-ml/pollen/cuda/internal/plan"
	"github.com/pollen-ml/pollen/tensor"
)

// PooledLaunches returns the number of launches of a workload that pooling in an epilogue changes.
func PooledLaunches(s tensor.Workload) int {
	return plan.PooledLaunches(s.Launches)
}

// Slices returns how the slices of a launch's product are computed in a runner: "none", "apart" or
// "in turn".
func Slices(r tensor.Runner, launch int) string {
	var calls []boundCall
	for _, s := range r.(*runner).shards[0].step {
		if s.Launch == launch {
			calls = append(calls, s)
		}
	}
	if len(calls) > 1 && strings.HasPrefix(calls[1].Symbol, "slices") {
		return "apart"
	}
	if strings.HasPrefix(calls[0].Symbol, "conv2d_windows") {
		return "none"
	}
	arguments := calls[0].Arguments
	if int32(arguments[len(arguments)-2].Bits) > 1 {
		return "in turn"
	}
	return "none"
}
