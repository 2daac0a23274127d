// Package tensor holds what every device shares: shapes, buffers in arenas, kernel launches, the
// Device interface, and the host device, which runs on the CPU only.
//
// Nouns. A Buffer is a typed region of one of three arenas: Shared (one copy: data sets,
// schedules), Chain (one copy per Markov chain, kept from step to step: parameters, sampler state)
// and Scratch (one copy per chain at work, valid within a step: activations, gradients). A Launch
// is one kernel with its arguments and the host function that does the same work. A Device loads a
// Workload, a list of launches and the sizes of the arenas, into a Runner, which runs it.
//
// Policy: chains are a launch dimension. No launch knows which chain it works for; chain c finds
// its buffers c strides further on. The bits a chain computes do not depend on how many chains run
// beside it, nor on the number of threads.
//
// Images are NCHW at every public boundary of Pollen: [B C H W], B the batch, C channels, H and W
// height and width.
package tensor
