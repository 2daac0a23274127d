// Package known has models whose local learning coefficient is known, to check estimates with:
// regressions, which are regular, and deep linear networks, which are singular. Their data are made
// from a fixed seed.
package known
