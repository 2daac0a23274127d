package datasets

import (
	"slices"
	"testing"

	"github.com/pollen-ml/pollen/internal/parquettest"
)

func TestParquetImages(t *testing.T) {
	images, _, _ := rowsOf(t, flowers(t, 1, ""), "")
	content := parquettest.Write(parquettest.Options{Codec: parquettest.Zstd}, parquettest.Column{Name: "image", Values: images},
		parquettest.Column{Name: "id", Values: []int64{7, 8, 9}})
	if !IsParquet(content) || IsParquet(content[1:]) {
		t.Error("the beginning is not recognised")
	}
	got, err := ParquetImages("a.parquet", content, ArrayLimits{Bytes: 1 << 20, Images: 3}, Options{})
	if err != nil || len(got) != 3 || got[2].File != "a.parquet[2]" || got[2].ID != "9" || !slices.Equal(got[2].Content, images[2].Bytes) {
		t.Errorf("%+v, %v", got, err)
	}
	for want, limits := range map[string]ArrayLimits{
		"a.parquet: must have at most 2 images, got 3": {Images: 2}, "metadata must have at most 8 bytes": {Bytes: 256},
	} {
		_, err := ParquetImages("a.parquet", content, limits, Options{})
		wantError(t, err, want)
	}
	large := []parquettest.Image{{Bytes: make([]byte, 60_000)}, {Bytes: make([]byte, 60_000)}}
	for want, o := range map[string]parquettest.Options{
		"a page must have at most 100000 bytes":                {},
		"a.parquet: the images must have at most 100000 bytes": {PageRows: 1},
	} {
		_, err := ParquetImages("a.parquet", parquettest.Write(o, parquettest.Column{Name: "image", Values: large}), ArrayLimits{Bytes: 100_000}, Options{})
		wantError(t, err, want)
	}
}
