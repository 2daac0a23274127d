// Command benchmarks times Pollen beside the same work done by others (Gorgonia's TapeMachine,
// PyTorch, JAX), in the same run.
//
//	go run ./benchmarks step      training steps: networks, batches, samplers; all other sides
//	go run ./benchmarks chains    1, 2, 4 and 16 chains: images per second of all together
//	go run ./benchmarks predict   class probabilities under a sample, and averages over samples
//	go run ./benchmarks kernels   kernels, as shares of the machine's measured peaks
//	go run ./benchmarks gpu       on a GPU: steps of many chains, each call of a step,
//	                              convolutions, updates
//	go run ./benchmarks gpu --predict   without one: what the model in package cuda says of these
//
// The sides of a comparison take turns: in each round each makes a number of steps, so that other
// load on the machine affects all. Figures are medians over rounds; ratios are of medians. --json
// writes them with the machine's description, for benchmarks/history; with --quiet-check only if
// nothing else has used the processors, before and after.
//
// On a machine with a GPU but without Go, see benchmarks/gpucheck: it packs programs that check
// and time everything there.
//
// On a GPU each side is in the record as soon as it was timed. When the GPU is lost, or does not
// answer, the command ends with exit code 3, and another run with --resume goes on behind the side
// that failed:
//
//	while benchmarks gpu --resume --json record.json; [ $? = 3 ]; do :; done
//
// PyTorch and JAX (on GPUs too) run in processes of their own, which --python starts (see
// peers/requirements.txt); an absent one is left out, with a message. A process is stopped while
// others have their turn: threads of some spin for a while when they have nothing to do.
package main
