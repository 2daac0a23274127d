package datasets

import (
	"bytes"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets/internal/parquet"
)

// EncodedImage is an image file in a row of a Parquet file.
type EncodedImage struct {
	File    string // with the number of the row, from 0: "new.parquet[3]"
	ID      string // the row's identifier, see Dataset.IDs; "" for none
	Content []byte
}

// IsParquet reports whether content begins like a Parquet file.
func IsParquet(content []byte) bool { return bytes.HasPrefix(content, []byte(parquet.Magic)) }

// ParquetImages returns the image files in a Parquet file that is in memory. It does not decode
// them. The limits are for the bytes of all image files and of a page. It returns an error if a row
// has no image.
func ParquetImages(name string, content []byte, limits ArrayLimits, options Options) (images []EncodedImage, err error) {
	options.limits = limits
	s := &shard{path: name, name: name, content: content, options: options}
	opened, file, columns, err := s.open()
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	if limits.Images > 0 && file.Rows > int64(limits.Images) {
		return nil, errors.Errorf("datasets: %s: must have at most %[3]d images, got %[2]d", name, file.Rows, limits.Images)
	}
	ids, err := newTextColumn(file, columns.id)
	if err != nil {
		return nil, s.wrap(err)
	}
	rows := s.rows()
	defer rows.close()
	total := int64(0)
	for row := range int(file.Rows) {
		read, err := rows.read(row)
		if err != nil {
			return nil, s.wrap(errors.WithMessagef(err, "row %d", row))
		}
		if total += int64(len(read)); total > options.limit(parquet.MaxPage) {
			return nil, errors.Errorf("datasets: %s: the images must have at most %d bytes, got more", name, limits.Bytes)
		}
		id, err := ids.next()
		if err != nil {
			return nil, s.wrap(err)
		}
		images = append(images, EncodedImage{s.place(row), id, bytes.Clone(read)})
	}
	return images, nil
}
