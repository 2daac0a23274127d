// Package op provides the ops of models, losses, metrics and updates.
//
// An op is a comparable struct of attributes, and b.Apply makes a node of it:
//
//	conv := op.Conv2D{Stride: op.Square(1), Padding: op.Square(2), Dilation: op.Square(1)}
//	y := b.Apply(conv, x, w)
//
// Each op's comment gives its formula and its shapes, inputs first, in CUTLASS's letters except for
// B: B batch, C input channels, H and W height and width, K output channels, R and S filter height
// and width, P and Q output height and width. docs/ops.md lists the types, devices, fusions and
// tests of every op.
//
// An op has a method Shape, which returns an error for every attribute that is out of range or has
// no effect, and a method Lower, which emits the launches: a host loop and the names of CUDA
// kernels. Its gradient is computed by other ops, some of them unexported structs in the same file.
// Outputs never share memory with inputs, except a View's, and the same inputs give the same bits
// with any number of threads.
package op
