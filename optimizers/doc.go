// Package optimizers has the textbook rules of gradient descent as update ops of the graph, and
// schedules of their learning rates.
//
// An Optimizer is a comparable struct of a rule's hyperparameters. Its Update attaches to one
// parameter the op that changes it at every step, and the states that the rule keeps. In the
// formulae theta is the parameter, g the gradient of the mean loss, and rate the learning rate on
// the mean loss, from a table by step. A Schedule makes that table.
//
// WeightDecay always refers to the mean loss: g is the gradient plus WeightDecay*theta, which for a
// data set of N examples is a prior N(0, 1/(N*WeightDecay)) on theta. AdamW is the exception: its
// decay is not part of g.
//
// An update reads and writes each parameter and each state once and does not allocate. It rounds
// after every operation, so that no architecture fuses a product with a sum and all give the same
// bits. A hyperparameter or rate that is negative, not finite or beyond float32 is an error.
//
// A hyperparameter of 0 is 0, not a default. The comments of the fields have the usual values, with
// which bayes.ParseMethod("adam") returns an Adam.
package optimizers
