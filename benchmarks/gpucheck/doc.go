// Command gpucheck packs a check of Pollen for a machine with a GPU, which needs neither Go nor a
// network: x86-64 Linux with bash and coreutils; Python with PyTorch and JAX for the other sides,
// compute-sanitizer if it is installed.
//
//	go run ./benchmarks/gpucheck gpu.tar.gz             here: programs, data, gpu-check.sh, ~50 MB
//	tar xzf gpu.tar.gz && gpu/gpu-check.sh OUT          there: everything, within ten minutes
//
// OUT gets record.json, with the verdict and the time of each check, the tiles' calibration, the
// times of steps as CUDA graphs and the benchmarks' figures, and log.txt. The checks are: the
// devices are listed; the driver compiles all kernels (each file's time is logged); a short
// training; the conformance suite of the ops; the samplers' tests, distributions included; a
// training under compute-sanitizer; the speed of each tile of the product kernels, of which
// cuda/geometry_tile.go has estimates; steps whose calls wait only for what they need, beside steps
// whose calls wait for each other; and the benchmarks beside PyTorch and JAX; with a large
// GPU_CHECK_SECONDS, batches of 1024 and eight chains, too. The script goes on after a failure.
// Each check has a time limit; what is cut short or finds no time left is reported and counts
// as a failure. The exit status is 1 if anything failed.
//
//	go run ./benchmarks/gpucheck --emulated gpu.tar.gz  with the emulated GPU's library
//	gpu/gpu-check.sh --emulated OUT                     all of it at small sizes, on the emulated
//	                                                    GPU; the peers compute on the CPU
//
// GPU_CHECK_ONLY="devices benchmarks" runs only these checks; more variables are at the head of the
// script.
package main
