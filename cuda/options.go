package cuda

// Options select the GPUs to open, and how to compute on them.
type Options struct {
	// GPUs are the driver's numbers of the GPUs. Empty means GPU 0. The chains of a workload are
	// split over them evenly.
	GPUs []int
	// Precision applies to matrix products and convolutions; empty means FP32. Parameters, updates
	// and noise stay in the program's type.
	Precision Precision
	// Driver is the path of the driver library. Empty means $POLLEN_CUDA_DRIVER or, if that is
	// empty, too, the system's library.
	Driver string
	// Synchronous waits after each kernel, so that an error names the launch that caused it. It is
	// slow.
	Synchronous bool

	sequential bool // makes each call of a CUDA graph follow the one before it, for comparison in measurements
}

// DriverVariable names the environment variable with the path of the driver library.
const DriverVariable = "POLLEN_CUDA_DRIVER"
