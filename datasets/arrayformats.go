package datasets

import (
	"bytes"
	"os"
)

// arrayFormat is a row of the table of formats of arrays that Open and ReadImages read.
type arrayFormat struct {
	description string                 // for errors
	recognise   func(path string) bool // must exist
	// read ignores the shape, classes and splits of the options: arraySet.splits and finish apply
	// them, or appendImages.
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

// ArrayFormats describes the formats of arrays that Open and ReadImages read, a line for each, and
// Parquet files, which have image files; see the package documentation.
//
// An .npz archive with the arrays train_images, train_labels, val_images, val_labels, test_images
// and test_labels (MedMNIST), x_train, y_train, x_test and y_test (Keras; also with a capital X),
// or one array called images, x, data or arr_0, and one called labels, y, targets, target or arr_1,
// also in capitals. Images are unsigned bytes or booleans, with Options.Bits also uint16 and with
// Options.FloatMax also floats, [N H W], [N H W C] or [N C H W] with up to MaxChannels channels; C
// is the dimension that is smaller than H and W, or Options.Channels. Labels are integers or text
// [N] or [N 1]; text is the name of a class.
//
// CIFAR-10 and CIFAR-100, as a directory or as the published .tar.gz, binary or for Python;
// CIFAR-100 with its 100 fine labels. No code in a pickle is executed.
//
// A directory with IDX files under MNIST's names, also with a prefix as in EMNIST, [N H W] or
// [N C H W] of any size.
//
// A CSV file (.csv, .csv.gz) with a line per image: a label, a number from 0 or, below a header,
// the name of a class, and the pixels of a square image from 0 to 255, in grey or with red, green
// and blue of each pixel in turn. Whole numbers may end in ".0". The label is in the column that
// Options.Label names, or in the one headed label (or class, classid, category), or else, in a
// file without a header, in the first column, which is a remark. A column that numbers the images
// (pandas' index without a name, id, index, a name that ends in id) is not read, nor are other
// labels than Options.Label, which is a remark. Other columns are errors, unless Options.Group or
// Options.OtherColumns names them. Or a directory with such files: train.csv, test.csv and
// val.csv, or names that end like these, such as mnist_train.csv.
//
// The classes of arrays are the labels that training images have, in order, and are named after
// them: labels need not begin at 0, and missing ones are a remark. Labels that no training image
// has are an error in other splits. Splits other than train that have no labels, such as Kaggle's
// test.csv, are left out, which is a remark; ReadImages reads them.
func ArrayFormats() (descriptions []string) {
	for _, f := range arrayFormats {
		descriptions = append(descriptions, f.description)
	}
	return append(descriptions, parquetDescription, tableDescription)
}

// arraysAt returns the format of the arrays at a path, or nil if there are none.
func (o Options) arraysAt(path string) *arrayFormat {
	if _, err := os.Stat(path); err != nil || o.isTableFile(path) {
		return nil // an error is reported when the path is opened
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

// arrayReader returns the function that reads arrays from the content of a file in memory, such as
// an upload, or nil if there are none.
func arrayReader(name string, content []byte) func(name string, content []byte, options Options) (arraySet, error) {
	_, isCSV := csvStem(name)
	zipped := bytes.HasPrefix(content, []byte("\x1f\x8b")) // a line end may be repeated many times
	switch {
	case bytes.HasPrefix(content, []byte("\x93NUMPY")):
		return func(name string, content []byte, options Options) (arraySet, error) {
			return readNPYImages(name, bytes.NewReader(content), options)
		}
	case bytes.HasPrefix(content, []byte("PK\x03\x04")):
		return func(name string, content []byte, options Options) (arraySet, error) {
			parts, err := readNPZ(name, bytes.NewReader(content), int64(len(content)), options)
			return arraySet{parts: parts}, err // without labels, which nobody reads
		}
	case isCSV && !zipped:
		return func(name string, content []byte, options Options) (arraySet, error) {
			part, _, err := readCSV(name, bytes.NewReader(content), options)
			return arraySet{parts: [3]*arrayPart{Test: part}}, err
		}
	case (zipped || bytes.HasPrefix(content, []byte{0, 0})) && beginsLikeIDX(bytes.NewReader(content)): // which takes a large buffer
		return func(name string, content []byte, options Options) (arraySet, error) {
			part := &arrayPart{name: name}
			var err error
			_, part.images, err = readIDX(name, bytes.NewReader(content), options.limit(idxMaxSize), part.shape)
			return arraySet{parts: [3]*arrayPart{Test: part}}, err
		}
	}
	return nil
}
