// Package tensor holds what all devices share: shapes, buffers in arenas, kernel launches, the
// [Device] interface, and the host device, which runs on the CPU.
//
// # Arenas
//
// A [Buffer] is a typed region of one of three arenas, which differ in how many copies exist and
// how long the contents live:
//
//	Shared   one copy per device         data sets, schedules
//	Chain    one copy per Markov chain   parameters, sampler state; kept from step to step
//	Scratch  one copy per running chain  activations, gradients; undefined when a step starts
//
// # Launches
//
// A [Launch] is one kernel with its arguments, together with the host function that does the same
// work. A [Device] loads a [Workload], which is a list of launches and the sizes of the arenas,
// into a [Runner], which runs it.
//
// # Chains are strides
//
// Chains are a launch dimension. No launch refers to a particular chain: chain c finds its buffers
// c strides further on. With a Chain arena of 4096 bytes and a weight at offset 256, for instance,
// chain 3 updates bytes 3*4096+256 onwards, by the same launch as every other chain. The bits that
// a chain computes depend neither on the number of chains nor on the number of threads.
//
// # Layout
//
// Images are NCHW at every public boundary of Pollen: [B C H W], with B the batch size, C the
// channels, H the height and W the width.
package tensor
