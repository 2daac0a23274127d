// Command gpucheck checks Pollen on a machine with an NVIDIA GPU that has neither Go nor a network.
//
//	go run ./benchmarks/gpucheck pack gpu.tar.xz    here: builds everything into one archive
//	tar xJf gpu.tar.xz && gpu/gpucheck first OUT    there: is it right, how fast is each call?
//	gpu/gpucheck speed OUT                          there: next to PyTorch and JAX, and scaling
//
// Call first takes at most 200 seconds, speed at most 480 (--seconds). Each writes to the directory
// OUT as it goes, the most valuable results first, so a call that is cut off keeps everything it
// has found so far:
//
//	record.json     every check with its verdict, and which features of the device are right
//	log.txt         the checks' output, each line with the name of its check
//	compile.txt     every kernel as the driver compiled it: milliseconds, registers, local memory
//	steps.json      training steps, with the features of the device on and off
//	calls.json      every call of a step: measured and predicted time
//	dumps.tar.gz    what failing tests got and wanted
//	peers.json, scaling.json, updates.json, calibration.json, counters.csv    other timings
//
// The first checks of call first form a ladder: each is a separate process with a time limit, and
// needs one feature more than the one before. If a rung fails, its feature is switched off for
// everything that follows, by the variables in docs/cuda.md.
//
// The exit status is 0 if all checks passed, 1 if any failed or was cut, and 2 for a wrong command
// line. With --emulated, given to pack and to the calls, everything runs at small sizes on the
// emulated GPU.
package main
