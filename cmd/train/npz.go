package main

import (
	"archive/zip"
	"fmt"
	"io"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/tensor"
)

// samplesFile collects the probabilities under each sample.
type samplesFile struct {
	images, classes int
	probabilities   []float32 // [S N K]
	weights         []float64 // [S]
}

func (s *samplesFile) add(probabilities []float32, weight float64) error {
	s.probabilities, s.weights = append(s.probabilities, probabilities...), append(s.weights, weight)
	return nil
}

// write writes the arrays "probabilities" and "weights" as NumPy's NPZ, version 1.0 of its format.
func (s *samplesFile) write(path string) error {
	pending, err := file.Create(path)
	if err != nil {
		return errors.Wrap(err, "train: samples")
	}
	defer pending.Close()
	archive := zip.NewWriter(pending)
	for _, array := range []struct {
		name, kind, shape string
		values            []byte
	}{
		{"probabilities", "<f4", fmt.Sprintf("%d, %d, %d", len(s.weights), s.images, s.classes), tensor.Bytes(s.probabilities)},
		{"weights", "<f8", fmt.Sprintf("%d,", len(s.weights)), tensor.Bytes(s.weights)},
	} {
		to, err := archive.Create(array.name + ".npy")
		if err != nil {
			return errors.Wrap(err, "train: samples")
		}
		if err := writeNPY(to, array.kind, array.shape, array.values); err != nil {
			return errors.Wrap(err, "train: samples")
		}
	}
	if err := archive.Close(); err != nil {
		return errors.Wrap(err, "train: samples")
	}
	return errors.Wrap(pending.Commit(), "train: samples")
}

func writeNPY(to io.Writer, kind, shape string, values []byte) error {
	const magic, alignment = "\x93NUMPY\x01\x00", 64
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", kind, shape)
	for (len(magic)+2+len(header)+1)%alignment != 0 {
		header += " "
	}
	header += "\n"
	if _, err := io.WriteString(to, magic+string([]byte{byte(len(header)), byte(len(header) >> 8)})+header); err != nil {
		return err
	}
	_, err := to.Write(values)
	return err
}
