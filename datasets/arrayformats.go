package datasets

import "os"

// arrayFormat is a row of the table of formats of arrays that Open and ReadImages read.
type arrayFormat struct {
	description string                 // for errors
	recognise   func(path string) bool // path is there
	// read leaves the shape, classes and splits of the options to arraySet.splits and finish, or to
	// appendImages.
	read func(path string, options Options) (arraySet, error)
}

// arrayFormats is the table, in the order in which formats are tried.
var arrayFormats = []arrayFormat{
	{"an archive of NumPy arrays (.npz)", isNPZ, readNPZFile},
	{"a published archive of CIFAR-10 or CIFAR-100 (.tar.gz)", isTar, readCIFARFile},
	{"a directory with the files of CIFAR-10 or CIFAR-100, binary or for Python", isCIFARDir, readCIFARDir},
	{"a directory with IDX files under MNIST's names", isIDXDir, readIDXDir},
	{"a CSV file with a label and pixels in each line (.csv, .csv.gz)", isCSV, readCSVFile},
	{"a directory with such CSV files for the splits, train.csv and test.csv", isCSVDir, readCSVDir},
	{"images without labels in NumPy's format (.npy)", isNPY, readNPYFile},
	{"an IDX file of images without labels", isIDXFile, readIDXPath},
}

// arraysAt returns the format of the arrays at a path, or nil if there are none.
func arraysAt(path string) *arrayFormat {
	if _, err := os.Stat(path); err != nil {
		return nil // reported when it is opened
	}
	for i := range arrayFormats {
		if arrayFormats[i].recognise(path) {
			return &arrayFormats[i]
		}
	}
	return nil
}

// open reads arrays as data sets.
func (f arrayFormat) open(path string, options Options) (*Splits, error) {
	set, err := f.read(path, options)
	if err != nil {
		return nil, err
	}
	return set.splits(path, options)
}
