package diagnostics

import "math"

// minBatches is the minimal number of batches of a long trace; there are at most twice as many.
const minBatches = 10

// batchMeans divides the trace of one chain into batches of equal length, which doubles when there
// are too many. The means of batches that are longer than the chain's memory are nearly
// independent.
type batchMeans struct {
	length, made int // steps of a batch, and steps of the last batch so far
	sums         []float64
}

func (m *batchMeans) add(value float64) {
	if len(m.sums) == 0 {
		m.length = 1
	}
	if len(m.sums) == 0 || m.made == m.length {
		m.merge()
		m.sums, m.made = append(m.sums, 0), 0
	}
	m.sums[len(m.sums)-1] += value
	m.made++
}

// merge joins batches in pairs when there are 2 minBatches.
func (m *batchMeans) merge() {
	if len(m.sums) < 2*minBatches {
		return
	}
	for i := range minBatches {
		m.sums[i] = m.sums[2*i] + m.sums[2*i+1]
	}
	m.sums = m.sums[:minBatches]
	m.length *= 2
}

// moments returns the mean of a step's values over whole batches, and the variance of that mean;
// NaN for fewer than two batches.
func (m *batchMeans) moments() (mean, variance float64) {
	whole := m.sums
	if m.made < m.length {
		whole = whole[:len(whole)-1]
	}
	mean, variance = meanAndVariance(whole)
	length := float64(m.length)
	return mean / length, variance / (length * length * float64(len(whole)))
}

// standardError returns the standard error of the mean over the chains and their steps, by the
// method of batch means. It is the larger of two estimates: one from the batches of each chain, and
// one from the chains' means, which notices chains that stay in different places. It is NaN for a
// single chain of fewer than two batches.
func standardError(chains []batchMeans) float64 {
	var means, variances []float64
	for i := range chains {
		mean, variance := chains[i].moments()
		means, variances = append(means, mean), append(variances, variance)
	}
	within, _ := meanAndVariance(variances)
	_, between := meanAndVariance(means)
	if math.IsNaN(within) || between > within {
		within = between
	}
	return math.Sqrt(within / float64(len(chains)))
}

// meanAndVariance returns the mean and the unbiased estimate of the variance, which is NaN for one
// value.
func meanAndVariance(values []float64) (mean, variance float64) {
	n := float64(len(values))
	mean, variance = 0/n, 0/(n-1)
	for _, v := range values {
		mean += v / n
	}
	for _, v := range values {
		variance += (v - mean) * (v - mean) / (n - 1)
	}
	return mean, variance
}
