package command

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
)

// Images with 12 bits in 16 are stretched by --bits 12, in training and by predict: the answers are
// the same as for images of 16 bits.
func TestBits(t *testing.T) {
	dir := t.TempDir()
	for i := range 40 {
		class := i % 2
		for name, scale := range map[string]uint32{"few": 1, "all": 16} {
			img := image.NewGray16(image.Rect(0, 0, 8, 8))
			for at := range 64 {
				v := uint32(1000*class+37*at*(i+1)%2000) * scale
				if scale > 1 {
					v = (v/scale*65535 + 2047) / 4095
				}
				img.SetGray16(at%8, at/8, color.Gray16{Y: uint16(v)})
			}
			img.SetGray16(0, 0, color.Gray16{Y: map[string]uint16{"few": 4095, "all": 65535}[name]})
			place := filepath.Join(dir, name, string(rune('a'+class)))
			var file bytes.Buffer
			if err := png.Encode(&file, img); err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(place, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(place, fmt.Sprintf("%02d.png", i)), file.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	answers := map[string]string{}
	for name, flags := range map[string][]string{"few": {"--bits", "12"}, "all": nil} {
		run, images := filepath.Join(dir, "run-"+name), filepath.Join(dir, name)
		succeed(t, append([]string{"fit", "--data", images, "--model", "mlp-10", "--method", "sghmc", "--epochs", "3", "--folder", run}, flags...)...)
		stdout, _ := succeed(t, "predict", run, filepath.Join(images, "a"), "--csv")
		answers[name] = strings.ReplaceAll(stdout, images, "")
		succeed(t, "eval", run)
	}
	if answers["few"] != answers["all"] || answers["few"] == "" {
		t.Errorf("with --bits 12:\n%s\nwant\n%s", answers["few"], answers["all"])
	}
	m, err := bayes.ReadManifest(filepath.Join(dir, "run-few"))
	if err != nil || m.Data.Bits != 12 || m.Notes["bits"] != "12" {
		t.Errorf("the manifest has %d bits and the notes %v (%v)", m.Data.Bits, m.Notes, err)
	}
	code, _, stderr := runInProcess("fit", "--data", filepath.Join(dir, "few"), "--bits", "5")
	if code != exitUsage || !strings.Contains(stderr, "must be 8 to 16, got 5") {
		t.Errorf("--bits 5: exit code %d: %s", code, stderr)
	}
}
