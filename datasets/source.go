package datasets

// knownSide is the height and width of the images of all known data sets.
const knownSide = 28

// source is a row of the table of known data sets: a description and where to find the files.
type source struct {
	name, what string
	images     [2]int // by Split; 0 if it is not fixed
	classNames []string
	mean, std  float64 // of the training set; 0 computes them from the images

	// render makes the data set if it is not read from files. The fields below are then empty.
	render func(Split) (*Dataset, error)

	files      [2]pair         // by Split
	subfolders []string        // of the user's directory, next to the one with the data set's name
	letterDirs [2][]string     // by Split: subdirectories of a place that may have A/*.png ... J/*.png
	dirs       func() []string // where the data set's distribution puts the files; nil for nowhere
	module     *goModule       // a Go module with the files; nil for none
	mirrors    []string        // base addresses to download the files from
	advice     string          // how the user can get the files
}

// pair is the two files of a split.
type pair struct{ images, labels file }

// mnistPair returns a pair with the names of MNIST's files for a split, train or t10k.
func mnistPair(split string, images, labels file) pair {
	images.name, labels.name = split+"-images-idx3-ubyte", split+"-labels-idx1-ubyte"
	return pair{images, labels}
}

// file is a published IDX file.
type file struct {
	name    string // without .gz
	content string // SHA-256 of the uncompressed file; "" for any
	packed  string // SHA-256 of the published .gz file; "" if it cannot be downloaded
	size    int64  // size of the published .gz file
}

// dataset makes a Dataset of the source from images and labels.
func (s source) dataset(images, labels []byte) *Dataset {
	dataset := &Dataset{
		Name: s.name, Images: images, Labels: widened(labels),
		Channels: 1, Height: knownSide, Width: knownSide,
		Classes: len(s.classNames), ClassNames: s.classNames,
		Mean: []float64{s.mean}, Std: []float64{s.std},
	}
	if s.std == 0 {
		dataset.Mean, dataset.Std = moments(images, 1, knownSide*knownSide)
	}
	return dataset
}
