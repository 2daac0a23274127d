// Package optest is the conformance suite: every op on every device, from one table.
//
// Nouns. A Case is a row of the table: an op, or a small graph of ops, on inputs of one shape, with
// the formula written again as a naive loop over float64. Run puts each row to three uses on a
// device, Benchmark to a fourth:
//
//  1. the outputs against the naive loop, in float32 and float64, with NaN in all memory that the
//     op should fill and sentinels around every buffer; every launch may change its written
//     arguments and nothing else;
//  2. the gradients against central finite differences in float64, under a random cotangent;
//  3. the device against the host, and the bits against themselves: run again, with other chains
//     beside, and on the host with other numbers of threads; on the host a step allocates nothing;
//  4. speed, with floating-point operations and bytes.
//
// To add an op, add a row to the cases_*.go file of its family: a name, the op, its inputs and the
// naive loop; Terms is the number of terms in an output element's sum, from which the tolerance
// follows. Use sizes that divide nothing (1, 31, 33, 257), and one row of more than 8192 elements,
// so that the work is cut into several tiles. A new family is a new file and a line in Cases. A
// package with ops of its own, such as updates, gives its rows to RunCases.
//
// Policy: a comparison is Close with the tolerance of a sum, and a row that needs a looser one says
// why.
package optest
