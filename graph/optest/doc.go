// Package optest is the conformance suite of ops: every op on every device, from one table.
//
// A Case is a row of the table: an op, or a small graph of ops, with inputs and the formula written
// again as a naive loop over float64. Run tests each row on a device, and Benchmark measures those
// with Speed. Run compares
//
//  1. the outputs with the naive loop, in float32 and float64. Memory that the op must fill begins
//     as NaN, and every buffer lies between sentinels: a launch may change only its written
//     arguments;
//  2. the gradients with central finite differences in float64, for a random cotangent, or with the
//     row's own formula;
//  3. the device with the host, and bits with bits: a second run, a run with other chains, and on
//     the host runs with other numbers of threads. On the host a step must not allocate.
//
// To add an op, add rows to the cases_*.go file of its family: a name, the op, its inputs and the
// naive loop. Terms is the number of terms in the sum behind an output element; it sets the
// tolerance, see SumTol. Use sizes that divide nothing (1, 31, 33, 257), and one row of more than
// 8192 elements, so that the work is divided into several tiles. A new family is a new file and a
// line in Cases. Packages with further ops, such as updates, pass their rows to RunCases. A row
// with a looser tolerance must give a reason.
//
// docs/ops.md is generated from the rows: go test ./graph/optest -run TestSupportTable -update.
package optest
