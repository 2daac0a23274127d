package datasets

import (
	"path"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// imageIndex finds images by the names that tables have for them. Names are compared in Unicode's
// normal form NFC, with slashes and backslashes alike.
type imageIndex struct {
	dir    string // relative to the root
	images []imageFile
	// matches[part][form] finds an image by its path relative to dir (part 0) or the last part of
	// that (1), with its extension (form 0) or without (1).
	matches [2][2]map[string]match
}

// match is an image that has a given name, and the number of images that have it.
type match struct {
	image imageFile
	count int
	// asIs is false if the image was found only after removing the extensions.
	asIs bool
}

func newImageIndex(dir string, images []imageFile) *imageIndex {
	x := &imageIndex{dir: dir, images: images}
	for part := range x.matches {
		x.matches[part] = [2]map[string]match{{}, {}}
	}
	for _, image := range images {
		name := comparedName(strings.TrimPrefix(strings.TrimPrefix(image.name, dir), "/"))
		for part, name := range []string{name, lastPart(name)} {
			for form, key := range []string{name, withoutExtension(name)} {
				x.matches[part][form][key] = match{image, x.matches[part][form][key].count + 1, form == 0}
			}
		}
	}
	return x
}

// find returns the image with a name: by its path or, if the name has no directory or byLastPart
// is set, by its last part. If there is none, extensions are ignored. The match's count is 0 if
// no image has the name.
func (x *imageIndex) find(name string, byLastPart bool) match {
	name = comparedName(name)
	for form, key := range []string{name, withoutExtension(name)} {
		if found := x.matches[0][form][key]; found.count > 0 && !byLastPart {
			return found
		}
		if byLastPart || !strings.Contains(name, "/") {
			if found := x.matches[1][form][lastPart(key)]; found.count > 0 {
				return found
			}
		}
	}
	return match{}
}

// flat reports whether at most one directory directly below dir has images, so that these
// directories are not classes.
func (x *imageIndex) flat() bool {
	dirs := map[string]bool{}
	for _, image := range x.images {
		if first, _, deeper := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(image.name, x.dir), "/"), "/"); deeper {
			dirs[first] = true
		}
	}
	return len(dirs) <= 1
}

// comparedName returns a name as imageIndex compares it.
func comparedName(name string) string {
	return path.Clean(norm.NFC.String(strings.ReplaceAll(strings.TrimSpace(name), `\`, "/")))
}

// withoutExtension removes an image's extension.
func withoutExtension(name string) string {
	if IsImage(name) {
		return strings.TrimSuffix(name, path.Ext(name))
	}
	return name
}
