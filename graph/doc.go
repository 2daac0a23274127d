// Package graph turns a Gorgonia expression graph into a program that every device can run.
//
// A Builder makes nodes: inputs (data, parameters, state) and applications of an Op.
// Builder.Gradients differentiates a scalar symbolically, through Gorgonia. Builder.Compile turns
// the graph into a Program, once: a flat list of launches over a static memory plan. Program.Load
// puts the program into a device's memory as a Session of C Markov chains, which run together, step
// after step. Interpret is the oracle of the tests: it runs the same graph node by node, without
// memory plan, fusion or reuse of memory.
//
// Semantics of a step: every read of a parameter sees the value that the step began with, because
// updates are scheduled after all other readers. Then the metrics go into a ring of MetricRows rows
// and the step counter is incremented. A step needs nothing of the host, so that a device can run
// many in a row.
//
// Errors: a Builder keeps its first error. Later calls do nothing and return nil nodes, and Compile
// returns the error, so that a program checks once.
package graph
