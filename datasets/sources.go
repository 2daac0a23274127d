package datasets

import "slices"

// sources returns the table of data sets.
func sources() []source {
	return []source{mnist(), fashionMNIST(), notMNIST(), glyphs()}
}

// Names returns the names of the known data sets.
func Names() []string {
	var names []string
	for _, source := range sources() {
		names = append(names, source.name)
	}
	return names
}

// ownerOf returns the name of the data set with a published file of one of these hashes,
// uncompressed or compressed, or "". Successors of MNIST have files of the same names, so a
// directory may have the files of another data set.
func ownerOf(hashes ...string) string {
	for _, s := range sources() {
		for _, files := range s.files {
			for _, f := range []file{files.images, files.labels} {
				if f.content != "" && slices.Contains(hashes, f.content) || f.packed != "" && slices.Contains(hashes, f.packed) {
					return s.name
				}
			}
		}
	}
	return ""
}
