package tensor

// Device is a machine that runs schedules: the host's CPU, or a GPU.
type Device interface {
	// Name says which device this is, as in "cpu (2 threads, AVX2)".
	Name() string
	// Load allocates memory for a schedule and makes it ready to run. The arenas start zeroed.
	Load(s Workload) (Runner, error)
	// Close releases the device. Its runners must have been closed.
	Close() error
}

// Workload is a list of launches that makes one step, and the sizes in bytes of the arenas they
// work in.
type Workload struct {
	Launches []Launch
	Bytes    [arenas]int // of one copy of each arena
	Chains   int
	Keeps    bool // whether Keep will be called: it takes a second copy of the chains' memory
}

// Runner is a schedule in a device's memory.
type Runner interface {
	// Run runs the schedule steps times for all chains and waits for the end.
	Run(steps int) error
	// Step runs one step of one chain, for finding faults, not for speed. It calls visit after each
	// launch; inside visit the chain's Scratch buffers can be read.
	Step(chain int, visit func(launch int) error) error
	// Read copies chain's copy of b, from element first on, into dst. Scratch buffers can be read
	// only inside Step's visit.
	Read(b *Buffer, chain, first int, dst []byte) error
	// Write copies src into chain's copy of b from element first on.
	Write(b *Buffer, chain, first int, src []byte) error
	// Keep remembers the chains' memory (the Chain arena) as it is, replacing what it had before.
	Keep() error
	// Return restores the chains' memory to what it was at the last Keep.
	Return() error
	// Close frees the memory.
	Close() error
}
