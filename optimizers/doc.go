// Package optimizers moves parameters down the gradient of a loss: the textbook rules as updates in
// the graph, and schedules of their step sizes.
//
// Nouns. An Optimizer is a comparable struct of a rule's hyperparameters; its Update attaches to
// one parameter the op that changes it at every step, and the states the rule remembers. theta is
// the parameter, g the gradient of the mean loss, rate the step size or learning rate on the mean
// loss, held in a table by step. A Schedule makes that table.
//
// WeightDecay always refers to the mean loss: g is the gradient plus WeightDecay*theta, which for a
// data set of N examples is a prior N(0, 1/(N*WeightDecay)) on theta. Only AdamW takes it out of g.
//
// Policy: an update reads and writes each parameter and each state once, does not allocate, and
// rounds after every operation, so that no architecture fuses a product with a sum and all give the
// same bits. A hyperparameter or rate that is negative, not finite or beyond float32 is an error.
package optimizers
