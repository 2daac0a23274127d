package diagnostics

// StandardError is the thermometer's, of traces of chains.
func StandardError(chains [][]float64) float64 {
	means := make([]batchMeans, len(chains))
	for i, chain := range chains {
		for _, v := range chain {
			means[i].add(v)
		}
	}
	return standardError(means)
}
