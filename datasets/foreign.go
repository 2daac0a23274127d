package datasets

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// foreignData are formats of data that are not read, with the line of Python that converts a file
// into arrays. %[1]q is the file, and %[2]q the .npz archive to write.
var foreignData = []struct {
	name       string
	extensions []string
	python     string
}{
	{"MATLAB's format", []string{".mat"},
		`import numpy, scipy.io; numpy.savez(%[2]q, **{k: numpy.ascontiguousarray(v) for k, v in scipy.io.loadmat(%[1]q).items() if k[0] != "_"})`},
	{"HDF5", []string{".h5", ".hdf5", ".hdf"},
		`import h5py, numpy; numpy.savez(%[2]q, **{k: v[()] for k, v in h5py.File(%[1]q).items()})`},
	{"PyTorch's format", []string{".pt", ".pth"},
		`import numpy, torch; numpy.savez(%[2]q, **{k: numpy.ascontiguousarray(v) for k, v in torch.load(%[1]q).items()})`},
	{"a pickle, which may run any code,", []string{".pkl", ".pickle"},
		`import numpy, pickle; numpy.savez(%[2]q, **pickle.load(open(%[1]q, "rb")))`},
	{"TFRecord", []string{".tfrecord", ".tfrecords"},
		`import numpy, tensorflow as tf; f = [tf.train.Example.FromString(r.numpy()).features.feature for r in tf.data.TFRecordDataset(%[1]q)]; ` +
			`numpy.savez(%[2]q, images=[tf.io.decode_image(e["image"].bytes_list.value[0]).numpy() for e in f], ` +
			`labels=[e["label"].int64_list.value[0] for e in f])`},
}

// conversion returns what to do about a file of a format that is not read, or "" for others.
func conversion(path string) string {
	extension := filepath.Ext(path)
	for _, format := range foreignData {
		if slices.Contains(format.extensions, strings.ToLower(extension)) {
			return format.name + " is not read: convert it to an .npz archive, with arrays such as images and labels, in Python:\n  " +
				fmt.Sprintf(format.python, path, strings.TrimSuffix(path, extension)+".npz")
		}
	}
	return ""
}

// labelFiles returns what to do about a directory in which each image has a file with its class, as
// in WebDataset's unpacked archives, or "" for others.
func labelFiles(dir string, entries []dirEntry) string {
	const extension = ".cls"
	image := slices.IndexFunc(entries, func(e dirEntry) bool { return !e.isDir && IsImage(e.name) })
	label := slices.IndexFunc(entries, func(e dirEntry) bool { return !e.isDir && filepath.Ext(e.name) == extension })
	if image < 0 || label < 0 {
		return ""
	}
	const python = `import csv, pathlib; d = pathlib.Path(%q); csv.writer(open(d/"labels.csv", "w", newline="")).writerows([("file", "class")] + ` +
		`[(i.name, i.with_suffix(%q).read_text().strip()) for i in sorted(d.glob(%q))])`
	return fmt.Sprintf("; classes in a file for each image, such as %s, are not read: list them in such a file, in Python:\n  ", entries[label].base()) +
		fmt.Sprintf(python, dir, extension, "*"+filepath.Ext(entries[image].name))
}
