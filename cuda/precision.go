package cuda

import "github.com/pollen-ml/pollen/cuda/internal/plan"

// Precision is the type to which matrix products and convolutions round their operands. Their sums
// are always float32. Parameters, updates and noise are float32 or float64 whatever the precision.
type Precision = plan.Precision

// The precisions. TF32 and BF16 use the tensor cores, from compute capability 8.0 on.
const (
	FP32 = plan.FP32
	TF32 = plan.TF32
	BF16 = plan.BF16
)
