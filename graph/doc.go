// Package graph turns a Gorgonia expression graph into a program that every device can run.
//
// Nouns. A Builder makes nodes: inputs (data, parameters, state) and applications of an Op.
// Gradients differentiates a scalar symbolically, through Gorgonia. Compile turns what was built
// into a Program, once: a flat list of launches over a static memory plan. Load puts a program into
// a device's memory as a Session of C Markov chains, which then run together, step after step.
// Interpret is the oracle: it runs the same graph node by node, without a plan, fusion or reuse of
// memory.
//
// Policy: every read of a parameter within a step sees the value the step began with; updates come
// after all readers. The first error in building a graph sticks to the Builder: later calls do
// nothing, and Compile returns it.
package graph
