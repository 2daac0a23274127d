// Package op holds the ops that models, losses, metrics and updates are made of: one file each.
//
// An Op is a comparable struct of attributes; applying it makes a node:
//
//	conv := op.Conv2D{Stride: op.Square(1), Padding: op.Square(2), Dilation: op.Square(1)}
//	y := b.Apply(conv, x, w)
//
// Each op's comment gives its formula and shapes, inputs first, in the letters used everywhere: B
// batch, C input channels, H and W height and width, K output channels, R and S filter height and
// width, P and Q output height and width.
//
// Policy: outputs are fresh memory, every attribute that has no effect or no meaning is an error of
// Shape, and the same inputs give the same bits with any number of threads.
package op
