// Package known has models whose local learning coefficient is known, for checking estimates:
// regressions, which are regular, and deep linear networks, which are singular. Their data are
// generated from a fixed seed.
package known
