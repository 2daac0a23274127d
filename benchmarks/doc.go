// Command benchmarks times training steps: Pollen's, and the same network's on Gorgonia's own ops and TapeMachine, in the same run.
//
//	go run ./benchmarks
//
// prints, for each network at batch 100, the median milliseconds of a step, images per second, and the ratio of the medians. The runs
// alternate, so that what else the machine does falls on both.
package main
