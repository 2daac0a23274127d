# The expected values of TestConvergenceAgreesWithPosterior, by R's package posterior (Debian: r-cran-posterior 1.4.0):
#
#   Rscript diagnostics/testdata/convergence.R
#
# Each case is a matrix with a column for each chain. It is made of the numbers of Lehmer's generator x <- 16807 x mod (2^31 - 1) by sums,
# products, quotients and roundings alone, which are the same in every language.

suppressMessages(library(posterior))

uniforms <- function(n, chains, seed) {
  x <- seed
  u <- numeric(n * chains)
  for (i in seq_along(u)) {
    x <- (16807 * x) %% 2147483647
    u[i] <- x / 2147483647
  }
  matrix(u, n, chains)
}

autoregression <- function(n, chains, seed, correlation) {
  x <- uniforms(n, chains, seed) - 0.5
  for (t in 2:n) x[t, ] <- correlation * x[t - 1, ] + x[t, ]
  x
}

stuck <- uniforms(100, 4, 6)
stuck[, 3] <- 0.25
heavy <- uniforms(1000, 2, 9)
wide <- uniforms(257, 4, 5) - 0.5
wide[, 1] <- 4 * wide[, 1]

cases <- list(
  "independent"          = uniforms(250, 4, 1),
  "autoregression 0.9"   = autoregression(500, 4, 2, 0.9),
  "autoregression -0.6"  = autoregression(201, 3, 3, -0.6),
  "chains apart"         = sweep(uniforms(257, 4, 4), 2, c(0, 0.25, 0.5, 0.75), "+"),
  "one chain wider"      = wide,
  "one chain stuck"      = stuck,
  "ties"                 = floor(4 * autoregression(400, 2, 7, 0.8)) / 4,
  "random walk"          = autoregression(333, 1, 8, 1),
  "heavy tails"          = (heavy - 0.5) / (heavy * (1 - heavy)),
  "short"                = uniforms(13, 2, 10)
)

for (name in names(cases)) {
  x <- cases[[name]]
  cat(sprintf("%-20s %.12g, %.12g, %.12g, %.12g\n", name, rhat(x), ess_bulk(x), ess_tail(x), mcse_mean(x)))
}
