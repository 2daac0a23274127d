package datasets

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets/internal/decode"
)

// letterNames are the classes of notMNIST and glyphs.
var letterNames = []string{"A", "B", "C", "D", "E", "F", "G", "H", "I", "J"}

// notMNIST describes Y. Bulatov's letters A to J of some thousand typefaces (2011), white on black,
// each stretched to fill the image. There are many conversions of it, so any pair of IDX files is
// accepted, and the original directories of PNGs. Only the test files of D. Flanagan's conversion
// can be downloaded.
func notMNIST() source {
	return source{
		name:       "notmnist",
		what:       "letters A to J of found typefaces",
		classNames: letterNames,
		files: [2]pair{
			Train: mnistPair("train", file{}, file{}),
			Test: mnistPair("t10k",
				file{size: 3172375, packed: "70ae9e06201f2827e5b0a3781a3169d735dd2efc69996b9eeaee7f10ed4044d7"},
				file{size: 5118, packed: "1fa03836e01c862542f8eb83463bb951bebec6fcb3efa28dad748c6b38a9021b"},
			),
		},
		letterDirs: [2][]string{Train: {"notMNIST_large", "train"}, Test: {"notMNIST_small", "test", "."}},
		mirrors: []string{
			"https://raw.githubusercontent.com/davidflanagan/notMNIST-to-MNIST/17823f4d4a3acd8317c07866702d2eb2ac79c7a0/",
		},
		advice: "Unpack notMNIST_large.tar.gz (train) or notMNIST_small.tar.gz (test) of " +
			"http://yaroslavvb.com/upload/notMNIST/ into a directory and set " + EnvironmentDir + " to it.",
	}
}

// locateLetters returns the first of the named directories inside place that has directories A ...
// J, or "".
func locateLetters(place string, names []string) string {
next:
	for _, name := range names {
		dir := filepath.Join(place, name)
		for _, letter := range letterNames {
			if info, err := os.Stat(filepath.Join(dir, letter)); err != nil || !info.IsDir() {
				continue next
			}
		}
		return dir
	}
	return ""
}

// readLetters reads A/*.png ... J/*.png, each directory in the order of names. Files that do not
// decode to an image of the right size are listed in Skipped; the original set has some. It returns
// an error if a class has no readable image.
func (s source) readLetters(dir string) (*Dataset, error) {
	var images, labels []byte
	var skipped []string
	hash, d := sha256.New(), decode.NewDecoder()
	for class, letter := range letterNames {
		entries, err := os.ReadDir(filepath.Join(dir, letter))
		if err != nil {
			return nil, errors.Wrapf(err, "datasets: %s", s.name)
		}
		before := len(labels)
		for _, entry := range entries {
			if !strings.EqualFold(filepath.Ext(entry.Name()), ".png") {
				continue
			}
			name := letter + "/" + entry.Name()
			content, err := readFile(filepath.Join(dir, letter, entry.Name()), maxFile)
			if err != nil {
				return nil, errors.Wrapf(err, "datasets: %s", s.name)
			}
			fmt.Fprintf(hash, "%s\n%d\n", name, len(content))
			hash.Write(content)
			pixels, err := decodeLetter(d, content)
			if err != nil {
				skipped = append(skipped, name+": "+err.Error())
				continue
			}
			images, labels = append(images, pixels...), append(labels, byte(class))
		}
		if len(labels) == before {
			return nil, errors.Errorf("datasets: %s: %s: must have a readable .png file; skipped %d so far: %s",
				s.name, filepath.Join(dir, letter), len(skipped), strings.Join(skipped[:min(len(skipped), 3)], "; "))
		}
	}
	dataset := s.dataset(images, labels)
	dataset.Place, dataset.Skipped = dir, skipped
	dataset.Hashes = map[string]string{filepath.Base(dir) + "/*/*.png": hex.EncodeToString(hash.Sum(nil))}
	return dataset, nil
}

// decodeLetter returns the grey pixels of an image, which must have the size of the letters.
func decodeLetter(d *decode.Decoder, content []byte) ([]byte, error) {
	info, err := d.Probe(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	if info.Height != knownSide || info.Width != knownSide {
		return nil, errors.Errorf("must have %[3]dx%[4]d pixels, got %[1]dx%[2]d", info.Height, info.Width, knownSide, knownSide)
	}
	pixels := make([]byte, knownSide*knownSide)
	return pixels, d.Decode(context.Background(), pixels, content, 1, knownSide, knownSide)
}
