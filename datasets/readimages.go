package datasets

import (
	"slices"

	"github.com/pkg/errors"
)

// ReadImages reads image files, and all image files below directories, without labels, for
// predictions. It also reads the files that a label table names, all images of the Parquet files
// and arrays that Open reads, with or without labels, of a .npy file with one or several images,
// and of an IDX file. Labels and ClassNames of the result are nil; Files has the path of each
// image, with its index in an array or its row in a Parquet file, as in "test.csv[0]". The shape is
// Options.Channels, Height and Width, chosen as by Open if they are 0. Files that cannot be read,
// paths that do not exist and directories without images are listed in Failed and Skipped. Mean and
// Std describe these images; a network needs the moments of its training set instead.
//
// It returns an error if more files are skipped than Options.MaxSkipped allows, or if no image can
// be read.
func ReadImages(paths []string, options Options) (*Dataset, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	options, remarks := options.recording()
	if slices.ContainsFunc(paths, func(path string) bool { return options.arraysAt(path) != nil }) {
		return readArrays(paths, options, remarks)
	}
	if len(paths) == 0 {
		return nil, errors.New("datasets: must have the path of at least 1 image or directory of images, got none")
	}
	images, failed, listed, err := readFiles(paths, options)
	if err != nil {
		return nil, err
	}
	if listed == 0 {
		return nil, errors.WithMessage(failed[0], "datasets")
	}
	images.Remarks = remarks.texts
	return images.without(failed, options)
}
