package emulator

// Options describe the emulated machine; 0 stands for the default.
type Options struct {
	GPUs       int   // default 1; None for a machine without GPUs
	Capability int   // default 90; 10 major + minor
	Memory     int64 // bytes of each GPU, default 1 GiB
	CUDA       int   // default 13000; the driver's version, 1000 major + 10 minor
	// Multiprocessors is the number of multiprocessors of each GPU, on which plans depend. If it is
	// 0, multiprocessorsVariable sets it, and the default is 4.
	Multiprocessors int
}

// multiprocessorsVariable names the environment variable that sets how many multiprocessors an
// emulated GPU has, to see the plans of a large one.
const multiprocessorsVariable = "POLLEN_EMULATOR_MULTIPROCESSORS"

// None GPUs.
const None = -1
