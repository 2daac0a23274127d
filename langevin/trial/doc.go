// Package trial supports the tests of samplers: potentials with known distributions, a small
// network, sessions on the device of the tests, and the sizes of statistical tests on the emulated
// GPU. A GaussianTest suffices for most custom samplers. Only tests import it.
package trial
