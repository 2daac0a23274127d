package emulator

// Options describe the emulated machine; 0 stands for the default.
type Options struct {
	GPUs       int   // 1; None for a machine without
	Capability int   // 90: 10 major + minor
	Memory     int64 // bytes of each GPU, 1 GiB
	CUDA       int   // 13000: the driver's version, 1000 major + 10 minor
}

// None GPUs.
const None = -1
