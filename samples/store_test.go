package samples

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/tensor"
)

// aSample has parameters out of alphabetical order, and a scalar.
func aSample(chain, step int) Sample {
	return Sample{Chain: chain, Step: step, Weight: 0.125, Parameters: []Parameter{
		{Name: "hidden.weight", Shape: tensor.Shape{2, 3}, Values: []float32{1, -2, 3.5, 0, math.MaxFloat32, 1e-45}},
		{Name: "hidden.bias", Shape: tensor.Shape{2}, Values: []float32{float32(chain), float32(step)}},
		{Name: "a.temperature", Shape: nil, Values: []float32{0.1}},
	}}
}

func newTestStore(t testing.TB) *Store {
	t.Helper()
	store := NewStore(filepath.Join(t.TempDir(), "deep", "samples"))
	if err := store.Create(); err != nil {
		t.Fatal(err)
	}
	return store
}

func TestStoreRoundTrip(t *testing.T) {
	store := newTestStore(t)
	// Chains and steps with different numbers of digits come back in numerical order.
	want := []Sample{aSample(0, 7), aSample(0, 10), aSample(0, 123456789), aSample(2, 1), aSample(11, 1), aSample(65534, 0)}
	for _, i := range []int{3, 0, 5, 4, 2, 1} {
		if err := store.Add(want[i]); err != nil {
			t.Fatal(err)
		}
	}
	files, err := NewStore(store.dir).Files()
	if err != nil || len(files) != len(want) {
		t.Fatalf("%d files (%v), want %d", len(files), err, len(want))
	}
	for i, file := range files {
		got, err := ReadSample(file)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want[i]) {
			t.Errorf("%s is %+v, want %+v", file, got, want[i])
		}
	}
}

// TestStoreFormat reads a file as the safetensors format defines it: the header's length, the
// header, the values in the order of the parameters.
func TestStoreFormat(t *testing.T) {
	content := fileOf(t, aSample(3, 40))
	length := binary.LittleEndian.Uint64(content)
	header, values := content[8:8+length], content[8+length:]
	const digits = 64
	at := strings.Index(string(header), `"sha256":"`) + len(`"sha256":"`)
	sum := string(header[at : at+digits])
	blank := bytes.Replace(content, []byte(sum), bytes.Repeat([]byte("0"), digits), 1)
	if got := fmt.Sprintf("%x", sha256.Sum256(blank)); got != sum {
		t.Errorf("the checksum is %s, and SHA-256 with zeros in its place %s", sum, got)
	}
	want := `{"__metadata__":{"chain":"3","sha256":"` + sum + `","step":"40","weight":"0.125"},` +
		`"hidden.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},` +
		`"hidden.bias":{"dtype":"F32","shape":[2],"data_offsets":[24,32]},` +
		`"a.temperature":{"dtype":"F32","shape":[],"data_offsets":[32,36]}}`
	if got := strings.TrimRight(string(header), " "); got != want {
		t.Errorf("header\n%s\nwant\n%s", got, want)
	}
	if length%8 != 0 {
		t.Errorf("the header has %d bytes: values are not aligned", length)
	}
	var floats []float32
	for ; len(values) >= 4; values = values[4:] {
		floats = append(floats, math.Float32frombits(binary.LittleEndian.Uint32(values)))
	}
	if want := []float32{1, -2, 3.5, 0, math.MaxFloat32, 1e-45, 3, 40, 0.1}; !reflect.DeepEqual(floats, want) {
		t.Errorf("values %v, want %v", floats, want)
	}
	for range 5 {
		if !bytes.Equal(fileOf(t, aSample(3, 40)), content) {
			t.Fatal("the same sample gives other bytes")
		}
	}
}

// A file without its checksum is an error, as is one with a wrong one.
func TestSampleWithoutChecksum(t *testing.T) {
	content := fileOf(t, aSample(3, 40))
	sum := regexp.MustCompile(`"sha256":"[0-9a-f]{64}",`).Find(content)
	path := filepath.Join(t.TempDir(), FileName(3, 40))
	for with, want := range map[string]string{
		strings.Repeat(" ", len(sum)): "it has no checksum",
		string(sum[:10]) + strings.Repeat("0", len(sum)-12) + string(sum[len(sum)-2:]): "it was changed: its SHA-256 is",
	} {
		if err := os.WriteFile(path, bytes.Replace(content, sum, []byte(with), 1), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadSample(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("with %s: error %v, want %s", with, err, want)
		}
	}
}

// fileOf returns the file that a store writes for a sample.
func fileOf(t testing.TB, s Sample) []byte {
	t.Helper()
	store := newTestStore(t)
	if err := store.Add(s); err != nil {
		t.Fatal(err)
	}
	files, err := store.Files()
	if err != nil || len(files) != 1 {
		t.Fatalf("%d files (%v)", len(files), err)
	}
	content, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestStoreDirs(t *testing.T) {
	store := newTestStore(t)
	if err := store.Create(); err != nil {
		t.Errorf("an empty directory: %v", err)
	}
	// Other files are ignored.
	if err := os.WriteFile(filepath.Join(store.dir, "README"), []byte("hello"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := store.Create(); err != nil {
		t.Errorf("a directory with another file: %v", err)
	}
	if err := store.Add(aSample(0, 1)); err != nil {
		t.Fatal(err)
	}
	if err := store.Create(); err == nil || !strings.Contains(err.Error(), "must not contain samples, got 1") {
		t.Errorf("a directory with a sample: error %v", err)
	}
	under := NewStore(filepath.Join(store.dir, "README", "samples"))
	if err := under.Create(); err == nil {
		t.Error("a directory inside a file: no error")
	}
	if _, err := NewStore(filepath.Join(store.dir, "missing")).Files(); err == nil {
		t.Error("a missing directory: no error")
	}
	if err := NewStore(filepath.Join(store.dir, "missing")).Add(aSample(0, 1)); err == nil {
		t.Error("a sample into a missing directory: no error")
	}
}

// Many samples at once: an invalid one does not prevent the others from being written.
func TestStoreAddsManyAtOnce(t *testing.T) {
	store := newTestStore(t)
	var samples []Sample
	for chain := range 3*writers + 1 {
		samples = append(samples, aSample(chain, 5))
	}
	samples[writers+1].Weight = -1
	if err := store.Add(samples...); err == nil || !strings.Contains(err.Error(), "weight must be finite and not negative, got -1") {
		t.Errorf("got the error %v, want that of the weight", err)
	}
	files, err := store.Files()
	if err != nil || len(files) != len(samples)-1 {
		t.Errorf("%d files (%v), want %d", len(files), err, len(samples)-1)
	}
	if err := store.Add(); err != nil {
		t.Errorf("no samples: %v", err)
	}
}

func TestStoreUnwritable(t *testing.T) {
	store := newTestStore(t)
	if err := os.RemoveAll(store.dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(store.dir, nil, 0o600); err != nil { // not even root can write into it
		t.Fatal(err)
	}
	if err := store.Add(aSample(0, 1)); err == nil {
		t.Error("a sample into what is a file: no error")
	}
	if err := NewStore(filepath.Join(store.dir, "more")).Create(); err == nil {
		t.Error("a directory in what is a file: no error")
	}
}

// badSamples are samples that no run can draw.
func badSamples() map[string]Sample {
	bad := map[string]Sample{}
	for name, change := range map[string]func(s *Sample){
		"negative chain":   func(s *Sample) { s.Chain = -1 },
		"negative step":    func(s *Sample) { s.Step = -1 },
		"negative weight":  func(s *Sample) { s.Weight = -1 },
		"NaN weight":       func(s *Sample) { s.Weight = math.NaN() },
		"infinite weight":  func(s *Sample) { s.Weight = math.Inf(1) },
		"no parameters":    func(s *Sample) { s.Parameters = nil },
		"too few values":   func(s *Sample) { s.Parameters[0].Values = s.Parameters[0].Values[:5] },
		"no values":        func(s *Sample) { s.Parameters[1] = Parameter{Name: "x", Shape: tensor.Shape{0}} },
		"NaN":              func(s *Sample) { s.Parameters[0].Values[3] = float32(math.NaN()) },
		"infinity":         func(s *Sample) { s.Parameters[2].Values[0] = float32(math.Inf(-1)) },
		"negative extents": func(s *Sample) { s.Parameters[0].Shape = tensor.Shape{-2, -3} },
	} {
		s := aSample(1, 2)
		change(&s)
		bad[name] = s
	}
	return bad
}

func TestStoreRefusesBadSamples(t *testing.T) {
	store := newTestStore(t)
	for name, s := range badSamples() {
		if err := store.Add(s); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if files, err := store.Files(); err != nil || len(files) != 0 {
		t.Errorf("%d files were written (%v)", len(files), err)
	}
}

// TestReadSampleTruncated cuts a file at every length.
func TestReadSampleTruncated(t *testing.T) {
	content := fileOf(t, aSample(3, 40))
	for n := range content {
		if _, _, err := parseSample(content[:n]); err == nil {
			t.Fatalf("%d of %d bytes: no error", n, len(content))
		}
	}
	if _, _, err := parseSample(append(content, 0)); err == nil {
		t.Error("a byte too many: no error")
	}
	path := filepath.Join(t.TempDir(), "cut.safetensors")
	if err := os.WriteFile(path, content[:len(content)-1], 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadSample(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v, want one that names the file", err)
	}
	if _, err := ReadSample(path + ".missing"); err == nil {
		t.Error("a file that is not there: no error")
	}
}

// Flipping any bit of a file is detected.
func TestFlippedBits(t *testing.T) {
	content := fileOf(t, aSample(3, 40))
	for at := range content {
		for bit := range 8 {
			content[at] ^= 1 << bit
			if _, _, err := parseSample(content); err == nil {
				t.Fatalf("bit %d of byte %d was flipped: no error", bit, at)
			}
			content[at] ^= 1 << bit
		}
	}
}
