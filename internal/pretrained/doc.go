// Package pretrained computes features with networks of ONNX files, for runs that sample only the
// layers after them.
//
// A File is read once, when it is first needed. Its Stem is the part of the network before a cut, a
// layer from images to features. A stem whose weights are all frozen computes the features of an
// image only once: an Extractor keeps them in memory and, if it is told where, on disk.
//
// Errors are mistakes in the file or in Options, unless they are a rundir.DamagedError.
package pretrained
