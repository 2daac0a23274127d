package command

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/internal/npz"
	"github.com/pollen-ml/pollen/serve"
)

// Images with five channels, such as spectral bands, are trained on, scored, predicted, corrupted,
// served and exported, as bytes and as integers of 12 bits.
func TestFiveChannels(t *testing.T) {
	dir := t.TempDir()
	const images, size = 60, 5 * 8 * 8
	pixels, labels := make([]byte, images*size), make([]int64, images)
	deep := []byte("\x93NUMPY\x01\x00\x76\x00" + fmt.Sprintf("%-117s\n", "{'descr': '<u2', 'fortran_order': False, 'shape': (3, 5, 8, 8), }"))
	for i := range pixels {
		class := int64(i / size % 3)
		labels[i/size] = class
		pixels[i] = byte(i * 37 % 97)
		if int64(i%size/64) == class+1 {
			pixels[i] += 120
		}
		if i < 3*size {
			deep = binary.LittleEndian.AppendUint16(deep, uint16((int(pixels[i])*4095+127)/255))
		}
	}
	data, run, bands := filepath.Join(dir, "bands.npz"), filepath.Join(dir, "run"), filepath.Join(dir, "bands.npy")
	if err := npz.Write(data, npz.Array{Name: "x", Shape: []int{images, 5, 8, 8}, Values: pixels},
		npz.Array{Name: "y", Shape: []int{images}, Values: labels}); err != nil {
		t.Fatal(err)
	}
	var content bytes.Buffer
	if err := npz.WriteNPY(&content, npz.Array{Shape: []int{3, 5, 8, 8}, Values: pixels[:3*size]}); err != nil {
		t.Fatal(err)
	}
	deepBands := filepath.Join(dir, "deep.npy")
	for path, content := range map[string][]byte{bands: content.Bytes(), deepBands: deep} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	succeed(t, "fit", "--data", data, "--model", "mlp-10", "--method", "momentum", "--epochs", "20", "--folder", run)
	succeed(t, "eval", run)
	succeed(t, "corrupt", run)
	succeed(t, "export", run, "--to", "onnx")
	stdout, _ := succeed(t, "predict", run, bands, "--csv")
	for i := range 3 {
		if want := fmt.Sprintf("bands.npy[%d],%d,", i, i); !strings.Contains(stdout, want) {
			t.Errorf("predictions are\n%s\nwant %s...", stdout, want)
		}
	}
	if code, _, stderr := runInProcess("predict", run, deepBands); code == 0 || !strings.Contains(stderr, "state the number of their significant bits") {
		t.Errorf("without --bits: code %d, %s", code, stderr)
	}
	if of12, _ := succeed(t, "predict", run, deepBands, "--csv", "--bits", "12"); strings.ReplaceAll(of12, "deep.npy", "bands.npy") != stdout {
		t.Errorf("12 bits are predicted as\n%s\nwant\n%s", of12, stdout)
	}

	models, err := openModels([]modelDir{{dir: run}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	server, err := serve.New(models, serve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	answer := httptest.NewRecorder()
	server.ServeHTTP(answer, httptest.NewRequest("POST", "http://localhost/predict", bytes.NewReader(content.Bytes())))
	var got struct{ Answers []struct{ Index *int } }
	if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil || len(got.Answers) != 3 {
		t.Fatalf("the server answered %s (%v)", answer.Body, err)
	}
	for i, a := range got.Answers {
		if a.Index == nil || *a.Index != i {
			t.Errorf("the server answered %s, want the classes 0, 1, 2", answer.Body)
		}
	}
}
