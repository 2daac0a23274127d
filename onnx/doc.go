// Package onnx reads networks in the Open Neural Network Exchange format and applies them as
// layers, and writes such files.
//
// Open and Read return a Model. Model.Network makes a Network of it, which is a layers.Layer: it
// translates each node of the model into differentiable ops of package graph/op. Weights become
// parameters that start from the file's values, or, if they are frozen, constants that all chains
// share.
//
// A Network accepts any batch size. Whatever a model computes from shapes and constants only, such
// as the padding that exporters derive from the size of the input, is computed while the graph is
// built. The condition of an If must be such a value; the branch that it selects replaces the node.
//
// A model may define functions. Their nodes replace the calls while the file is read, and have the
// call's name before their own, as in "layer1/conv". Each node is translated by the version of the
// operators that its function imports. A function with the name of a standard operator is used only
// if the operator has no translation. Tensors in the branches of an If are constants.
//
// Files are untrusted: sizes are checked against the bytes that are there before memory is
// allocated, and an error names the node or the tensor. Operators that have no translation are
// reported together, before anything is computed.
//
// A Writer builds a model node by node. Writer.Emit adds a network of package graph/op, under one
// or several samples of its weights.
//
// Source: the ONNX specification, https://onnx.ai/onnx/repo-docs/IR.html, and its operators,
// https://onnx.ai/onnx/operators/, opsets 6 to 25.
package onnx
