// Package datasets gives the data sets that Pollen's programs train and test
// on, as labelled byte images in memory.
//
// Its nouns: a Dataset is a set of images with their labels; a Split is the
// part of it meant for training or for testing; a place is a folder where its
// files may lie. Load finds a data set by name, List tells what there is.
//
//	mnist          handwritten digits       60 000 + 10 000
//	fashion-mnist  articles of clothing     60 000 + 10 000
//	notmnist       letters A to J, found    as many as the user's copy has
//	glyphs         letters A to J, drawn    20 000 + 10 000, made by this package
//
// Its one policy: the data are what they are said to be, or there is an
// error. Every file is verified, by its SHA-256 where the data set is a
// published one; a file that is truncated, too long or hostile gives an error
// naming the file, the offset and what was expected there; a file that cannot
// be found gives an error naming every place tried.
//
// Nothing here shuffles, scales or copies to a device: images stay bytes, and
// the device turns a byte p into (p/255 - Mean)/Deviation as it gathers a
// minibatch.
package datasets
