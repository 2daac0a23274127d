// Command gpucheck packs what checks Pollen on a machine with a GPU, which needs neither Go nor a network for it.
//
//	go run ./benchmarks/gpucheck FOLDER     builds the programs into FOLDER, beside gpu-check.sh
//	go run ./benchmarks/gpucheck NAME.tar.gz   the same, as an archive
//	FOLDER/gpu-check.sh OUT                 there: everything within ten minutes; logs, a summary and the benchmarks' record under OUT
//
// The script lists the devices, runs the conformance suite, the samplers' and the optimizers' tests on the GPU, a short training, that training
// under compute-sanitizer where it is installed, and the benchmarks beside PyTorch and JAX where these are. It goes on after a failure; its
// exit status is 1 if anything failed.
package main
