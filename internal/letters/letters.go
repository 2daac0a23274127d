package letters

import (
	"encoding/binary"
	"os"
	"path/filepath"

	"github.com/pkg/errors"
)

// Write writes a training split and a test split of the given sizes to dir, as notMNIST's files.
// The class of an image is the position of a bright square on noise, which a small network learns
// within seconds.
func Write(dir string, train, test int) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return errors.Wrap(err, "letters")
	}
	for name, count := range map[string]int{"train": train, "t10k": test} {
		images := binary.BigEndian.AppendUint32([]byte{0, 0, 8, 3}, uint32(count))
		images = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(images, 28), 28)
		labels := binary.BigEndian.AppendUint32([]byte{0, 0, 8, 1}, uint32(count))
		noise := uint32(count)
		for i := range count {
			class := i % 10
			labels = append(labels, byte(class))
			for y := range 28 {
				for x := range 28 {
					noise = noise*1664525 + 1013904223
					pixel := byte(noise >> 26)
					if y/9 == class/4 && x/7 == class%4 {
						pixel = 220
					}
					images = append(images, pixel)
				}
			}
		}
		for kind, content := range map[string][]byte{"-images-idx3-ubyte": images, "-labels-idx1-ubyte": labels} {
			if err := os.WriteFile(filepath.Join(dir, name+kind), content, 0o644); err != nil {
				return errors.Wrap(err, "letters")
			}
		}
	}
	return nil
}
