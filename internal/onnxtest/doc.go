// Package onnxtest writes small ONNX files for tests, so that none has to be in the repository.
package onnxtest
