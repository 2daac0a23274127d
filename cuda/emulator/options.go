package emulator

// Options are the emulated machine's; what is 0 is the default.
type Options struct {
	GPUs       int   // 1; None for a machine without
	Capability int   // 90: 10 major + minor
	Memory     int64 // bytes of each GPU, 1 GiB
	CUDA       int   // 13000: the driver's version, 1000 major + 10 minor
}

// None GPUs.
const None = -1
