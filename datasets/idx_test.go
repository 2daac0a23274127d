package datasets

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pollen-ml/pollen/internal/testenv"
)

// idxBytes writes an array in IDX format, as its description specifies.
func idxBytes(dimensions []int, values []byte) []byte {
	content := []byte{0, 0, 8, byte(len(dimensions))}
	for _, n := range dimensions {
		content = binary.BigEndian.AppendUint32(content, uint32(n))
	}
	return append(content, values...)
}

// packed compresses content with gzip.
func packed(t testing.TB, content []byte) []byte {
	t.Helper()
	var buffer bytes.Buffer
	writer := gzip.NewWriter(&buffer)
	if _, err := writer.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

// randomBytes returns n bytes that do not compress.
func randomBytes(seed uint64, n int) []byte {
	random := rand.New(rand.NewPCG(seed, 0))
	values := make([]byte, n)
	for i := range values {
		values[i] = byte(random.Uint32())
	}
	return values
}

func TestReadIDX(t *testing.T) {
	for _, dimensions := range [][]int{{1}, {257}, {31, 33}, {3, 1, 5}, {2, 3, 31, 33}, {idxFirstRead + 1}, {5, idxFirstRead}} {
		size := 1
		for _, n := range dimensions {
			size *= n
		}
		want := randomBytes(1, size)
		plain := idxBytes(dimensions, want)
		for form, content := range map[string][]byte{"plain": plain, "gzip": packed(t, plain)} {
			gotDimensions, got, err := readIDX("file", bytes.NewReader(content), idxMaxSize, nil)
			if err != nil {
				t.Errorf("%v %s: %v", dimensions, form, err)
				continue
			}
			if diff := cmp.Diff(dimensions, gotDimensions); diff != "" {
				t.Errorf("%v %s: dimensions: %s", dimensions, form, diff)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%v %s: values differ", dimensions, form)
			}
		}
	}
}

func TestReadIDXErrors(t *testing.T) {
	values := randomBytes(2, 6)
	plain := idxBytes([]int{2, 3}, values)
	gz := packed(t, plain)
	damaged := bytes.Clone(gz)
	damaged[len(damaged)-6] ^= 1 // of the checksum
	for _, test := range []struct {
		name    string
		content []byte
		want    string
	}{
		{"empty", nil, "offset 0: got 0 of the 4 bytes of the magic number: unexpected EOF"},
		{"short magic", plain[:3], "offset 3: got 3 of the 4 bytes of the magic number"},
		{"text", []byte("<!DOCTYPE html>"), "some/file: offset 0: magic number must be 00 00 08 and 1 to 4 dimensions (an IDX file of bytes), got 3c 21 44 4f"},
		{"a page", []byte("<html>403 Forbidden</html>"), `got 3c 68 74 6d: "<html>403 Forbidden<" begins an HTML page, which servers send instead of a missing file`},
		{"text", []byte("version https://git-lfs.github.com/spec/v1\noid"), `: a text that begins with "version https://git-"`},
		{"type", idxBytes([]int{2, 3}, values)[:2], "offset 2: got 2 of"},
		{"floats", []byte{0, 0, 0x0d, 1, 0, 0, 0, 1, 0, 0, 0, 0}, "got 00 00 0d 01 (values of float32): save array.astype(numpy.uint8)"},
		{"no dimensions", []byte{0, 0, 8, 0}, "some/file: offset 0: magic number must be 00 00 08 and 1 to 4 dimensions (an IDX file of bytes), got 00 00 08 0"},
		{"many dimensions", []byte{0, 0, 8, 5}, "some/file: offset 0: magic number must be 00 00 08 and 1 to 4 dimensions (an IDX file of bytes), got 00 00 08 0"},
		{"short dimension", plain[:10], "offset 10: got 2 of the 4 bytes of dimension 1"},
		{"empty array", idxBytes([]int{2, 0}, nil), "some/file: offset 8: dimension 1 must be at least 1, got 0 (the array is empty)"},
		{"too large", idxBytes([]int{1 << 15, 1 << 16}, nil), "array must have at most 1073741824 values, got 2147483648 or more with dimension 1 of 65536"},
		{"overflow", append([]byte{0, 0, 8, 4, 0x40, 0, 0, 0}, bytes.Repeat([]byte{0xff}, 12)...), "or more with dimension 1 of 4294967295"},
		{"short values", plain[:16], "offset 16: got 4 of 6 values of [2 3]: unexpected EOF"},
		{"trailing data", append(bytes.Clone(plain), 0), "some/file: offset 18: must end after 6 values of [2 3], got more data"},
		{"trailing packed data", packed(t, append(bytes.Clone(plain), 0)), "some/file: offset 18: must end after 6 values of [2 3], got more data"},
		{"truncated header of gzip", gz[:5], "offset 0: gzip header: unexpected EOF"},
		{"truncated gzip", gz[:len(gz)-9], "unexpected EOF"},
		{"truncated checksum", gz[:len(gz)-1], "some/file: offset 18: must be the end of the data: unexpected EOF"},
		{"checksum", damaged, "some/file: offset 18: must be the end of the data: gzip: invalid checksum"},
		{"data after gzip", append(bytes.Clone(gz), 1, 2, 3), "some/file: offset 18: must be the end of the data: unexpected EOF"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := readIDX("some/file", bytes.NewReader(test.content), idxMaxSize, nil)
			wantError(t, err, "datasets: some/file: ", test.want)
		})
	}
}

// wantError fails the test unless err contains all the given parts.
func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error is\n%v\nwant it to have %q", err, part)
		}
	}
}

// A header may promise a gigabyte; memory is allocated as data arrive.
func TestReadIDXHostileHeader(t *testing.T) {
	content := idxBytes([]int{idxMaxSize}, []byte{1, 2, 3})
	var err error
	used := testenv.Allocated(func() { _, _, err = readIDX("file", bytes.NewReader(content), idxMaxSize, nil) })
	wantError(t, err, "offset 11: got 3 of 1073741824 values")
	if used > 4*idxFirstRead {
		t.Errorf("reading allocated %d bytes, want at most %d", used, 4*idxFirstRead)
	}
}

func FuzzReadIDX(f *testing.F) {
	plain := idxBytes([]int{2, 3}, []byte{1, 2, 3, 4, 5, 6})
	f.Add(plain)
	f.Add(packed(f, plain))
	f.Add(packed(f, plain)[:20])
	f.Add(plain[:9])
	f.Add(append(bytes.Clone(plain), 7))
	f.Add(idxBytes([]int{1, 1, 1, 1}, []byte{0}))
	f.Add(idxBytes([]int{1 << 20, 1 << 20, 1 << 20}, nil))
	f.Add([]byte{0x1f, 0x8b})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, content []byte) {
		const limit = 1 << 16
		dimensions, values, err := readIDX("file", bytes.NewReader(content), limit, nil)
		if err != nil {
			if dimensions != nil || values != nil {
				t.Errorf("an error, but also dimensions %v and %d values", dimensions, len(values))
			}
			if !strings.HasPrefix(err.Error(), "datasets: file: ") {
				t.Errorf("error %q does not name the file", err)
			}
			return
		}
		if len(values) > limit {
			t.Errorf("%d values, want at most %d", len(values), limit)
		}
		// What was read, written again, is the original content.
		again := idxBytes(dimensions, values)
		if len(content) >= 2 && content[0] == 0 && !bytes.Equal(again, content) {
			t.Errorf("read % x as %v, % x", content, dimensions, values)
		}
		gotDimensions, got, err := readIDX("file", bytes.NewReader(again), limit, nil)
		if err != nil || !cmp.Equal(gotDimensions, dimensions) || !bytes.Equal(got, values) {
			t.Errorf("read again: %v, %v", gotDimensions, err)
		}
	})
}
