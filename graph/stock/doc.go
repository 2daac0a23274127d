// Package stock runs graphs of Gorgonia's own ops, from programs that were written for Gorgonia
// without Pollen.
//
// A Machine replaces Gorgonia's TapeMachine: it computes a graph's loss, its gradients and the
// values that the program reads, and stores them where Gorgonia's solvers and Read expect them. A
// Network is a graph from its input to its logits as a layer: with Pollen's minibatches, losses and
// samplers it becomes a Bayesian network. Adopt translates any part of a graph. Refused is the
// error for a node that has no translation: it names the node, its op, the reason and what to write
// instead.
//
// The forward graph is translated, op by op, and differentiated by Pollen; Gorgonia's gradient
// nodes, several of which are wrong, are never evaluated. Attributes that an op does not export are
// read by reflection, from the types of Gorgonia v0.9.18, see layouts. A value that Gorgonia
// computes wrongly is computed correctly, or the graph is refused; docs/gorgonia.md has the list.
package stock
