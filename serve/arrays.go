package serve

import (
	"net/http"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
)

// expand replaces each upload that is a file of arrays by the images in it, which are then
// decoded, and each Parquet file by the image files in it. kind is the content type of the request.
func (b *backend) expand(m *model, uploads []upload, kind string, h *reservation) ([]upload, error) {
	var expanded []upload
	for i, u := range uploads {
		name := u.file
		if name == "" && kind == "text/csv" {
			name = "body.csv"
		}
		read := b.decodeArrays
		switch {
		case datasets.IsParquet(u.content):
			read = b.readParquet
		case !datasets.IsArrays(name, u.content):
			expanded = append(expanded, u)
			continue
		}
		images, err := read(m, name, u.content, b.options.MaxImages-len(expanded), h)
		if errors.As(err, new(*statusError)) { // about the request
			return nil, err
		}
		if err != nil {
			return nil, refuse(http.StatusBadRequest, "%s: %s", upload{file: name}.place(i), strings.TrimPrefix(clientText(err), name+": "))
		}
		expanded = append(expanded, images...)
	}
	if len(expanded) > b.options.MaxImages {
		return nil, b.tooMany()
	}
	return expanded, nil
}

// decodeArrays returns the images of a file of arrays. More than most images are an error.
func (b *backend) decodeArrays(m *model, name string, content []byte, most int, h *reservation) ([]upload, error) {
	if most < 1 {
		return nil, b.tooMany()
	}
	// Compressed arrays take their unpacked size, and there may be up to three of them; the
	// images are copied.
	const arrays = 4
	limit := min(b.options.MaxBody, b.options.Memory/(2*arrays))
	reserved := arrays*limit + 2*most*m.imageSize()
	if err := h.reserve(reserved); err != nil {
		return nil, err
	}
	d, err := datasets.DecodeArrays(name, content, datasets.ArrayLimits{Bytes: limit, Images: most}, m.queue.served.Load().arrays)
	if err != nil {
		return nil, err
	}
	uploads := make([]upload, d.Len())
	for i := range uploads {
		uploads[i] = upload{file: d.Files[i], pixels: d.Image(i)}
		if d.IDs != nil {
			uploads[i].id = d.IDs[i]
		}
	}
	h.giveBack(reserved - 2*d.Len()*m.imageSize()) // the request may have more such files
	return uploads, nil
}

// readParquet returns the image files in a Parquet file. More than most images are an error.
func (b *backend) readParquet(m *model, name string, content []byte, most int, h *reservation) ([]upload, error) {
	if most < 1 {
		return nil, b.tooMany()
	}
	// Two columns are read, of images and of identifiers. A page and its dictionary are in memory,
	// packed and unpacked, with some room to grow. So are metadata, and copies of the images.
	const parts = 12
	limit := min(b.options.MaxBody, b.options.Memory/(2*parts))
	if err := h.reserve(parts * limit); err != nil {
		return nil, err
	}
	images, err := datasets.ParquetImages(name, content, datasets.ArrayLimits{Bytes: limit, Images: most}, m.queue.served.Load().arrays)
	if err != nil {
		return nil, err
	}
	uploads, total := make([]upload, len(images)), 0
	for i, image := range images {
		uploads[i] = upload{file: image.File, content: image.Content, id: image.ID}
		total += len(image.Content)
	}
	h.giveBack(parts*limit - total)
	return uploads, nil
}
