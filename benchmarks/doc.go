// Command benchmarks times Pollen next to the same work in other frameworks (Gorgonia's
// TapeMachine, PyTorch, JAX), in the same run.
//
//	go run ./benchmarks step      training steps: networks, batches, samplers; all frameworks
//	go run ./benchmarks chains    1, 2, 4 and 16 chains: total images per second
//	go run ./benchmarks predict   class probabilities under a sample, and averages over samples
//	go run ./benchmarks pretrained
//	                              networks for images of 224 x 224 from ONNX files: features and
//	                              training steps, next to ONNX Runtime and PyTorch
//	go run ./benchmarks heads     many chains of HMC for a head on features, with BlackJAX and
//	                              NumPyro
//	go run ./benchmarks kernels   kernels, as fractions of the machine's measured peaks
//	go run ./benchmarks gpu       on a GPU: steps of many chains, each call of a step,
//	                              convolutions, updates
//	go run ./benchmarks gpu --predict   without one: the predictions of package cuda's model
//
// The sides of a comparison take turns: in each round each of them makes some steps, so that other
// load on the machine affects all. Figures are medians over rounds; ratios are of medians. --json
// writes them with the machine's description, for benchmarks/history; with --quiet-check only if
// nothing else has used the processors, before and after.
//
// For a machine with a GPU but without Go, see benchmarks/gpucheck: it packs programs that check
// and time everything there.
//
// On a GPU each side is in the record as soon as it has been timed. When the GPU is lost, or does
// not answer, the command ends with exit code 3, and another run with --resume continues after the
// side that failed:
//
//	while benchmarks gpu --resume --json record.json; [ $? = 3 ]; do :; done
//
// PyTorch and JAX run in separate processes, which --python starts (see peers/requirements.txt); a
// missing one is left out, with a message. A process is stopped while others have their turn:
// threads of some frameworks spin for a while when they are idle.
package main
