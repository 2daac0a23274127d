// Package cudatest opens the device that tests run on, so that tests of other packages, such as the
// samplers', can run on a GPU.
//
//	POLLEN_TEST_DEVICE=cuda go test ./langevin ./mcmc           on the first GPU
//	POLLEN_TEST_DEVICE=emulator go test ./optimizers            on the emulated one, slowly
//	POLLEN_TEST_DEVICE=ptx go test ./cuda                       the same, with the committed PTX
//
// Policy: tests run on the host unless a device is selected; then they run on that device or fail.
package cudatest
