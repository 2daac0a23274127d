package tensor

// Device is a machine that runs workloads: the host's CPU, or one or more GPUs. Several goroutines
// may use a device, each with runners of its own, which wait for each other.
type Device interface {
	// Name describes the device, for example "cpu (2 threads)".
	Name() string
	// Load allocates memory for a workload and prepares it to run. The arenas start zeroed.
	Load(w Workload) (Runner, error)
	// Close releases the device. Its runners must be closed first.
	Close() error
}

// Workload is a list of launches that performs one step, and the sizes of the arenas that they use.
type Workload struct {
	Launches []Launch
	Bytes    [arenas]int // size of one copy of each arena
	Chains   int
	// Header is a buffer of [3] uint64 in the Chain arena, or nil. Element 2 is the number of the
	// step, which the last launch increments; no other launch writes to the buffer.
	Header *Buffer
	Keeps  bool // whether Keep will be called, which needs a second copy of the chains' memory
}

// Runner is a workload in a device's memory.
type Runner interface {
	// Run performs the given number of steps of every chain and waits until they are done.
	Run(steps int) error
	// Step performs one step of one chain, launch by launch. It is slow and meant for debugging: it
	// calls visit after each launch, and inside visit the chain's Scratch buffers can be read.
	Step(chain int, visit func(launch int) error) error
	// Read copies elements of the chain's copy of b, starting at element first, into dst. Scratch
	// buffers can be read only inside Step's visit.
	Read(b *Buffer, chain, first int, dst []byte) error
	// Write copies src into the chain's copy of b, starting at element first.
	Write(b *Buffer, chain, first int, src []byte) error
	// Keep saves the Chain arena of all chains, replacing the copy of an earlier Keep.
	Keep() error
	// Return restores the Chain arena of all chains to its contents at the last Keep.
	Return() error
	// Close frees the memory.
	Close() error
}
