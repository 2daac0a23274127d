package datasets

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets/internal/parquet"
)

// The names of the columns of images and labels in Parquet files, in lower case, in order of
// preference. CIFAR-100 has two columns of labels.
var (
	imageHeadings = []string{"image", "img", "pixel_values", "picture", "images"}
	labelHeadings = slices.Concat(classHeadings, []string{"fine_label", "coarse_label"})
)

// parquetColumns are the columns of a Parquet file that are read.
type parquetColumns struct {
	image  parquet.Column  // the bytes of image files
	path   *parquet.Column // the paths of these files; nil for none, as of the others
	label  *parquet.Column
	group  *parquet.Column
	id     *parquet.Column
	names  []string // classes of labels that are integers, nil if labels are not numbered
	unread []string // names of columns that are neither these nor in Options.OtherColumns
	all    []string // columns with their types, for errors
}

// hubFeature describes a column in the metadata that the Hugging Face Hub adds.
type hubFeature struct {
	Type  string   `json:"_type"` // Image, ClassLabel ...
	Names []string // of a ClassLabel
}

// hubFeatures returns the descriptions of columns in a file's metadata, if it has any.
func hubFeatures(f *parquet.File) (map[string]hubFeature, error) {
	text, found := f.Metadata["huggingface"]
	if !found {
		return nil, nil
	}
	var described struct {
		Info struct{ Features map[string]json.RawMessage }
	}
	if err := json.Unmarshal([]byte(text), &described); err != nil {
		return nil, errors.Wrap(err, "the metadata huggingface must be JSON")
	}
	features := map[string]hubFeature{}
	for name, content := range described.Info.Features {
		var feature hubFeature
		if json.Unmarshal(content, &feature) == nil { // a list, for example, is described in another way
			features[name] = feature
		}
	}
	return features, nil
}

// chooseColumns chooses the columns of a file.
func chooseColumns(f *parquet.File, options Options) (c parquetColumns, err error) {
	features, err := hubFeatures(f)
	if err != nil {
		return c, err
	}
	var images, labels, labelsByClass, named, others []parquet.Column
	for _, column := range f.Columns {
		c.all = append(c.all, fmt.Sprintf("%s (%s)", column.Name, column.Type))
		isScalar := column.Type == parquet.Integer || column.Type == parquet.Text
		switch {
		case isScalar && options.GroupColumn() != "" && strings.EqualFold(column.Name, options.GroupColumn()):
			c.group = &column
		case isScalar && options.isLabel(column.Name):
			named = append(named, column)
		case slices.ContainsFunc(options.OtherColumns, func(name string) bool { return strings.EqualFold(column.Name, name) }):
		case imageField(column) != nil:
			images = append(images, column)
		case isScalar && features[column.Name].Type == "ClassLabel":
			labelsByClass = append(labelsByClass, column)
		case isScalar && slices.Contains(labelHeadings, strings.ToLower(column.Name)):
			labels = append(labels, column)
		default:
			others = append(others, column)
		}
	}
	for _, better := range [][]parquet.Column{labelsByClass, named} {
		if len(better) > 0 {
			others, labels = append(others, labels...), better
		}
	}
	image, rest, err := preferred("images", images, imageHeadings)
	if err != nil {
		return c, err
	}
	if image == nil {
		return c, errors.Errorf("must have a column of images, as bytes or as a struct with bytes, got the columns %s", abbreviated(c.all))
	}
	c.image, c.path = *imageField(*image), image.Field("path")
	if c.path != nil && c.path.Type != parquet.Text {
		c.path = nil
	}
	others = append(others, rest...)
	if c.label, rest, err = preferred("labels", labels, labelHeadings); err != nil {
		return c, err
	}
	if c.label != nil && c.label.Type == parquet.Integer {
		c.names = features[c.label.Name].Names
	}
	for _, column := range append(others, rest...) {
		c.unread = append(c.unread, column.Name)
	}
	slices.Sort(c.unread)
	c.id = idColumn(others)
	return c, checkNames(c.label, c.names)
}

// imageField returns the bytes of a column of images, or nil if it is none.
func imageField(column parquet.Column) *parquet.Column {
	if column.Type == parquet.Bytes {
		return &column
	}
	if field := column.Field("bytes"); field != nil && field.Type == parquet.Bytes {
		return field
	}
	return nil
}

// preferred returns the column that has the first of the wanted names, or the only column, and the
// others. It is nil if there are no columns.
func preferred(what string, columns []parquet.Column, wanted []string) (*parquet.Column, []parquet.Column, error) {
	var names, lower []string
	for _, c := range columns {
		names, lower = append(names, c.Name), append(lower, strings.ToLower(c.Name))
	}
	at := column(lower, wanted)
	switch {
	case len(columns) == 0:
		return nil, nil, nil
	case len(columns) == 1:
		at = 0
	case at < 0:
		return nil, nil, errors.Errorf("must have one column of %s, or one called %s, got %s", what, wanted[0], abbreviated(names))
	}
	return &columns[at], slices.Delete(slices.Clone(columns), at, at+1), nil
}

// idColumn returns the only column that numbers the images, or nil.
func idColumn(columns []parquet.Column) *parquet.Column {
	var names []string
	columns = slices.DeleteFunc(slices.Clone(columns), func(c parquet.Column) bool { return c.Type != parquet.Integer && c.Type != parquet.Text })
	for _, c := range columns {
		names = append(names, strings.ToLower(c.Name))
	}
	if at := indexColumn(names, func(string) bool { return false }); at >= 0 {
		return &columns[at]
	}
	return nil
}

// checkNames returns an error unless the names of classes are distinct and valid.
func checkNames(label *parquet.Column, names []string) error {
	numbers := map[string]int{}
	for i, name := range names {
		class := canonicalClass(name)
		if first, twice := numbers[class]; twice || class == "" {
			return errors.Errorf("column %s: class names must be distinct and not empty, got %q for the classes %d and %d", label.Name, name, first, i)
		}
		numbers[class] = i
	}
	return nil
}
