package stock

import "github.com/pollen-ml/pollen/graph"

// In an init function, since the translations call visit, which reads the map.
func init() {
	translations = map[string]func(t *translator, m *nodeInfo) *graph.Node{
		// Numbers that do not depend on inputs.
		"constantScalar": (*translator).constant,
		"constantTensor": (*translator).constant,
		"sizeOp":         (*translator).constant,
		// Elementwise functions.
		"elemBinOp":   (*translator).elementwise,
		"minBetween":  (*translator).minBetween,
		"maxBetween":  (*translator).maxBetween,
		"elemUnaryOp": (*translator).unary,
		// Products, shapes and parts. A convolution is recognised by its last node, a
		// transposition.
		"linAlgBinOp": (*translator).product,
		"reshapeOp":   (*translator).reshape,
		"transposeOp": (*translator).transpose,
		"repeatOp":    (*translator).repeat,
		"sliceOp":     (*translator).slice,
		"concatOp":    (*translator).concat,
		"atOp":        (*translator).at,
		// Reductions.
		"sumOp":     (*translator).sum,
		"maxOp":     (*translator).max,
		"softmaxOp": (*translator).softmax,
		// Layers.
		"dropoutOp":           (*translator).dropout,
		"maxPoolOp":           (*translator).maxPool,
		"globalAveragePoolOp": (*translator).globalAveragePool,
		"upsampleOp":          (*translator).upsample,
		"GroupNormOp":         (*translator).groupNorm,
		"BatchNormOp":         (*translator).batchNorm,
	}
}
