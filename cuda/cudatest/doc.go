// Package cudatest opens the device that tests run on, so that tests of something else, such as
// samplers, can run on a GPU.
//
//	POLLEN_TEST_DEVICE=cuda go test ./langevin ./mcmc     on the first GPU
//	POLLEN_TEST_DEVICE=emulator go test ./optimizers            on the emulated one, slowly
//	POLLEN_TEST_DEVICE=ptx go test ./cuda                       on that, with the committed PTX
//
// Policy: the host, unless a device is asked for; then only that device will do.
package cudatest
