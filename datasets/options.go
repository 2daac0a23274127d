package datasets

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets/internal/decode"
)

// EnvironmentDir is the name of the environment variable with the user's data directory, searched
// after Options.Dir.
const EnvironmentDir = "POLLEN_DATA"

// Duplicates selects the treatment of images that are in several splits, which makes scores too
// good, or under several labels.
type Duplicates string

// AllowDuplicates counts duplicates in remarks. DropDuplicates also removes each image that is a
// copy, or nearly a copy, of one in another split, from the later split in the order train, test,
// validation, and all images that have a copy with another label. RejectDuplicates returns an
// error if there are any.
const (
	AllowDuplicates  Duplicates = "allow"
	DropDuplicates   Duplicates = "drop"
	RejectDuplicates Duplicates = "reject"
)

// ArrayLimits bounds what DecodeArrays reads, whatever the content promises.
type ArrayLimits struct {
	Bytes  int // of the values of an array, as they are stored
	Images int
}

// Options configure where Open, Load and List search, and the shape, splits and classes of the
// images. The zero value suits most programs.
type Options struct {
	// Dir is the user's data directory. Files are searched in its subdirectory with the data set's
	// name, then in itself. "" is none.
	Dir string

	// Cache is the directory for downloads, in a subdirectory per data set, and for decoded images,
	// in "decoded". "" is the directory "pollen" in the user's cache directory; if that cannot be
	// written, decoded images are not cached, and Remark is called.
	Cache string

	// NoCache disables the cache of decoded images.
	NoCache bool

	// Offline forbids downloads.
	Offline bool

	// OnProgress, if not nil, is called from one goroutine at a time: during a download with the
	// file's name, the bytes received and the total; while decoding images with the directory, the
	// images done and the total.
	OnProgress func(file string, done, total int64)

	// Remark, if not nil, is called with remarks for the user on how the data were read. Those that
	// depend on the data are also in Dataset.Remarks.
	Remark func(text string)

	// Context cancels downloads and decoding. nil is context.Background().
	Context context.Context

	// Height, Width and Channels are the requested shape of the images; 0 keeps the data's own (for
	// image files of several sizes, see the package documentation). Height and Width must be set
	// together.
	Height, Width, Channels int

	// Crop keeps the aspect ratio of images that are scaled: only the largest part in the middle
	// that has the aspect ratio of Height and Width is scaled. Otherwise the whole image is
	// stretched to them.
	Crop bool

	// Validation is the fraction of the training images to draw for the validation split, Test
	// the fraction of all images to draw for the test split, if the data have no such split.
	// Negative means none. 0 means 0.2 for the test split, and for the validation split 0.1 or, for
	// fewer than 1000 images, up to 0.2, so that 100 are drawn. But known data sets then have only
	// their published splits, and if data have only a validation split, half of its images become
	// the test split.
	Validation, Test float64

	// Seed determines which images are drawn for the splits.
	Seed uint64

	// Group keeps images together that are alike, for example of one patient, video or track:
	// images of one group are drawn into the same split, while the classes keep their fractions as
	// well as groups allow. It is "parent" for the directory that a file is in; "column=NAME" for a
	// column of the label table, of a Parquet file or of a CSV file of pixels; or a regular
	// expression on the path of a file below the data's directory, or in a Parquet file, with
	// slashes, whose first capture group is the group, such as ^(.*)_ for 00007/00003_00029.ppm.
	// Each training image must have a group; groups must not be in several splits that the data
	// have. "" is no groups.
	Group string

	// Label is the name of the column with the labels, in any case, for label tables, CSV files of
	// pixels and Parquet files whose labels have another heading or that have several columns of
	// labels. It is an error if the data have no such column. "" finds the column by its heading.
	// Or it is "file=" and a regular expression on the path of an image below the data's directory,
	// with slashes, whose first capture group is the class, such as file=([^/]+)_\d+ for
	// images/Bengal_12.jpg; images without a class are left out, which is a remark.
	Label string

	// OtherColumns are the names of columns to ignore in CSV files of pixels and in Parquet files;
	// files need not have them. It makes files with the columns of a run's groups and labels
	// acceptable when the run predicts.
	OtherColumns []string

	// MinClasses is the smallest number of classes that training images may have. Fewer in a
	// directory of images are a FewClassesError before any image is decoded; other data are read.
	MinClasses int

	// Duplicates is what to do about images that are copies, or nearly copies, of images in another
	// split, and about copies with another label. "" is AllowDuplicates.
	Duplicates Duplicates

	// Classes, if not empty, are the names of the only classes to read. WithoutClasses are the
	// names of classes to omit. See Dataset.WithClasses.
	Classes, WithoutClasses []string

	// Unlabelled accepts test images without labels, as out-of-distribution data may be: the test
	// split's Labels and ClassNames are then nil. Without any labels, with a single directory of
	// images, and if there are images next to directories of classes, all images are test images.
	// It does not combine with Classes and WithoutClasses, which need labels.
	Unlabelled bool

	// Bits is the number of significant bits, 8 to 16, of the values of image files with 16 bits
	// per channel, such as the 12 of many cameras, and of arrays (.npy, .npz) of type uint16:
	// values of 0 to 2^Bits - 1 become bytes of 0 to 255. In arrays, larger values are errors. 0 is
	// 16 for files, and refuses such arrays.
	Bits int

	// FloatMax states the largest value of floating-point pixels in arrays (.npy, .npz, CSV): 1 or
	// 255. They are then rounded to bytes, and values beyond 0 to FloatMax are errors. 0 refuses
	// them: whether a float of 0.5 is grey or nearly black cannot be known from the file.
	FloatMax float64

	// MaxSkipped is the maximum fraction of a split's image files that may be skipped, see
	// Dataset.Skipped. 0 means 0.05, negative means none.
	MaxSkipped float64

	limits  ArrayLimits // 0 is no limit
	remarks *remarks    // set by recording
}

// remarks are the remarks so far.
type remarks struct {
	texts     []string // for Dataset.Remarks
	fewValues bool     // one is about images of 16 bits that use few of their values
}

// limit returns the maximum number of bytes of values to read: most, or the limit of the options
// if that is smaller.
func (o Options) limit(most int64) int64 {
	if o.limits.Bytes > 0 {
		most = min(most, int64(o.limits.Bytes))
	}
	return most
}

// recording returns options whose remarks on the data are also recorded.
func (o Options) recording() (Options, *remarks) {
	o.remarks = new(remarks)
	return o, o.remarks
}

// remark reports a remark on the data to the user, and records it for Dataset.Remarks. The text
// must depend on the data and the options only, since runs are compared by their bytes.
func (o Options) remark(format string, values ...any) {
	text := fmt.Sprintf(format, values...)
	if o.remarks != nil {
		o.remarks.texts = append(o.remarks.texts, text)
	}
	o.tell(text)
}

// remarkDecoded reports remarks on images that were decoded.
func (o Options) remarkDecoded(all []decode.Remark) {
	for _, remark := range all {
		o.remark("%s", remark.Text)
		if o.remarks != nil && remark.FewValues {
			o.remarks.fewValues = true
		}
	}
}

// tell reports something to the user that is not about the data.
func (o Options) tell(text string) {
	if o.Remark != nil {
		o.Remark(text)
	}
}

func (o Options) context() context.Context {
	if o.Context == nil {
		return context.Background()
	}
	return o.Context
}

// cache returns the cache directory, or an error if the machine has none.
func (o Options) cache() (string, error) {
	if o.Cache != "" {
		return o.Cache, nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", errors.Wrap(err, "no cache directory")
	}
	return filepath.Join(dir, "pollen"), nil
}

// shapes reports whether the options set a shape.
func (o Options) shapes() bool { return o.Height != 0 || o.Channels != 0 }

// selects reports whether the options select classes.
func (o Options) selects() bool { return len(o.Classes) > 0 || len(o.WithoutClasses) > 0 }

// duplicates returns Duplicates, or its default.
func (o Options) duplicates() Duplicates { return cmp.Or(o.Duplicates, AllowDuplicates) }

// The forms of Options.Group other than a regular expression, which has a capture group.
const (
	groupByParent = "parent"
	groupByColumn = "column="
)

// labelByFile is the beginning of Options.Label if it is a regular expression.
const labelByFile = "file="

// GroupColumn returns NAME if Group is column=NAME, or "".
func (o Options) GroupColumn() string {
	column, _ := strings.CutPrefix(o.Group, groupByColumn)
	if column == o.Group {
		return ""
	}
	return strings.TrimSpace(column)
}

// isLabel reports whether a heading is the one that Options.Label names.
func (o Options) isLabel(heading string) bool {
	return o.Label != "" && strings.EqualFold(heading, o.Label)
}

// checkLabel returns an error if the labels of a split are not in the column that Options.Label
// names.
func (o Options) checkLabel(splits *Splits) error {
	for _, d := range splits.all() {
		if o.Label != "" && d.Labels != nil && !o.isLabel(d.LabelColumn) {
			return invalid("Label", "must be a column of the label table, CSV file or Parquet file, got %q, but the labels of %s are in %s",
				o.Label, d.Name, cmp.Or(d.LabelColumn, "no column"))
		}
	}
	return nil
}

// groupPattern returns the pattern of the groups, or nil if they are not given by a pattern.
func (o Options) groupPattern() (*regexp.Regexp, error) {
	if o.Group == "" || o.Group == groupByParent || o.GroupColumn() != "" {
		return nil, nil
	}
	const forms = "must be parent, column=NAME, or a regular expression with a capture group, such as ^(.*)_"
	pattern, err := regexp.Compile(o.Group)
	if err != nil {
		return nil, invalid("Group", forms+", got %q: %v", o.Group, err)
	}
	if pattern.NumSubexp() == 0 {
		return nil, invalid("Group", forms+", got %q", o.Group)
	}
	return pattern, nil
}

// labelPattern returns the pattern of the classes, or nil if they are not given by a pattern.
func (o Options) labelPattern() (*regexp.Regexp, error) {
	text, found := strings.CutPrefix(o.Label, labelByFile)
	if !found {
		return nil, nil
	}
	const form = "must be a column, or file= and a regular expression with a capture group, such as file=([^/]+)_"
	pattern, err := regexp.Compile(text)
	if err != nil {
		return nil, invalid("Label", form+", got %q: %v", o.Label, err)
	}
	if pattern.NumSubexp() == 0 {
		return nil, invalid("Label", form+", got %q", o.Label)
	}
	return pattern, nil
}

// check returns an error if the options are invalid.
func (o Options) check() error {
	for _, share := range []struct {
		name  string
		value float64
	}{{"Validation", o.Validation}, {"Test", o.Test}} {
		if math.IsNaN(share.value) || share.value >= 1 {
			return invalid(share.name, "must be a fraction below 1 (0: the default, negative: none), got %v", share.value)
		}
	}
	if _, err := o.groupPattern(); err != nil {
		return err
	}
	if _, err := o.labelPattern(); err != nil {
		return err
	}
	switch {
	case o.duplicates() != AllowDuplicates && o.Duplicates != DropDuplicates && o.Duplicates != RejectDuplicates:
		return invalid("Duplicates", "must be %s, %s or %s, got %q", AllowDuplicates, DropDuplicates, RejectDuplicates, o.Duplicates)
	case o.Bits != 0 && (o.Bits < 8 || o.Bits > 16):
		return invalid("Bits", "must be 8 to 16, got %d", o.Bits)
	case o.FloatMax != 0 && o.FloatMax != 1 && o.FloatMax != math.MaxUint8:
		return invalid("FloatMax", "must be 1 or 255, got %v", o.FloatMax)
	case math.IsNaN(o.MaxSkipped) || o.MaxSkipped > 1:
		return invalid("MaxSkipped", "must be a fraction of at most 1, got %v", o.MaxSkipped)
	case (o.Height == 0) != (o.Width == 0) || o.Height < 0 || o.Width < 0:
		return invalid("Height", "must be set with Width, got %dx%d", o.Height, o.Width)
	case o.Height > MaxSide || o.Width > MaxSide:
		return invalid("Height", "images must be at most %[3]dx%[4]d, got %[1]dx%[2]d", o.Height, o.Width, MaxSide, MaxSide)
	case o.Channels < 0 || o.Channels > MaxChannels:
		return invalid("Channels", "must be at most %d, got %d", MaxChannels, o.Channels)
	}
	return nil
}
