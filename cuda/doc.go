// Package cuda is the place of the tensor.Device for NVIDIA GPUs.
//
// It holds no device yet: the programs list and take the host alone, and say so when another is asked for. What a device needs is fixed
// already: every tensor.Launch carries its kernel's symbol and all arguments a GPU kernel takes, chains are a launch dimension, and
// noise has an address, so that package graph/optest can hold any device to the host's results.
package cuda
