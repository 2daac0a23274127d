// Package stock runs graphs of Gorgonia's own ops: those of programs that were written for
// Gorgonia, without Pollen.
//
// Nouns. A Machine takes the place of Gorgonia's TapeMachine: it computes a graph's loss, its
// gradients and what the user reads, and leaves them where Gorgonia's solvers and users look. A
// Network is a user's graph from its input to its logits, as a layer: with Pollen's minibatches,
// losses and samplers it becomes a Bayesian network. Refused is the error for a node that has no
// translation: it names the node, its op, the reason and what to write instead.
//
// Policy: the forward graph is translated, op by op, and differentiated by Pollen; Gorgonia's
// gradient nodes, several of which are wrong, are never read. What an op's exported methods do not
// say is read by reflection, from the types of Gorgonia v0.9.18, see layouts. A value that Gorgonia
// gets wrong is right here or refused, as docs/gorgonia.md lists.
package stock
