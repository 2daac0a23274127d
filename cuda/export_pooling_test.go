package cuda

import (
	"strings"

	"github.com/pollen-ml/pollen/tensor"
)

// PooledLaunches is how many launches of a schedule change because of pooling in an epilogue.
func PooledLaunches(s tensor.Workload) int {
	launches, _ := apart(s.Launches)
	return len(findPoolings(launches))
}

// Slices is how the depth of a launch's product is cut in a runner: "none", "apart" or "in turn".
func Slices(r tensor.Runner, launch int) string {
	var calls []start
	for _, s := range r.(*runner).parts[0].calls {
		if s.launch == launch {
			calls = append(calls, s)
		}
	}
	if len(calls) > 1 && strings.HasPrefix(calls[1].symbol, "slices") {
		return "apart"
	}
	if strings.HasPrefix(calls[0].symbol, "conv2d_windows") {
		return "none"
	}
	arguments := calls[0].arguments
	if integer(arguments[len(arguments)-2]) > 1 {
		return "in turn"
	}
	return "none"
}
