// Package cudatest opens the device that tests run on, so that tests which are about something else, as those of samplers are, can be run on a GPU.
//
//	POLLEN_TEST_DEVICE=cuda go test ./langevin ./metropolis     on the first GPU
//	POLLEN_TEST_DEVICE=emulator go test ./optimizers            on the emulated one, slowly
//
// Policy: the host, unless a device is asked for; then nothing else will do.
package cudatest
