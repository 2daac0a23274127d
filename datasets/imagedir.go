package datasets

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/pkg/errors"
)

// openImageDir opens an image directory.
func openImageDir(root string, options Options) (*Splits, error) {
	found, err := options.scan(root)
	if err != nil {
		return nil, err
	}
	if options.Unlabelled && !options.selects() && !found.hasClasses() {
		return options.unlabelled(root)
	}
	for _, remark := range found.remarks {
		options.remark("%s", remark)
	}
	if classes := found.splits[Train].classes(); len(classes) < options.MinClasses {
		return nil, errors.WithStack(&FewClassesError{nameOf(root), classes, options.MinClasses})
	}
	for split, dir := range found.flat {
		if dir != "" && !(Split(split) == Test && options.Unlabelled) {
			options.remark("%s: left out, since it has no class directories and no table of classes", filepath.Join(nameOf(root), filepath.FromSlash(dir)))
		}
	}
	cache, err := newDecodedCache(found, options)
	if err != nil {
		return nil, err
	}
	decoded := cache.read()
	if decoded == nil {
		if decoded, err = found.decode(options); err != nil {
			return nil, err
		}
		// If the directory changed meanwhile, it no longer matches the key.
		if again, err := options.scan(root); err == nil && again.key(options) == found.key(options) {
			if err := cache.write(decoded); err != nil {
				if options.Cache != "" {
					return nil, errors.WithMessage(err, "datasets: decoded images cannot be cached: set Options.Cache to another directory, or NoCache")
				}
				options.notKept(err)
			}
		}
	}
	splits, err := decoded.splits(found, options)
	if err != nil || found.flat[Test] == "" || !options.Unlabelled {
		return splits, err
	}
	options.Channels, options.Height, options.Width = decoded.Channels, decoded.Height, decoded.Width
	if splits.Test, err = ReadImages([]string{filepath.Join(root, filepath.FromSlash(found.flat[Test]))}, options); err == nil {
		splits.Test.Name, splits.Test.Place = nameOf(root), root
	}
	return splits, err
}

// hasClasses reports whether directories or tables give images classes: there are splits, a table,
// or several class directories without images next to them.
func (t tree) hasClasses() bool {
	only := t.splits[Train]
	return t.splits[Validation] != nil || t.splits[Test] != nil || only.tables != nil || len(only.skipped) == 0 && len(only.classes()) > 1
}

// decode decodes all images of a tree.
func (t tree) decode(options Options) (*decodedSet, error) {
	files := imageFiles{subject: t.root, shaping: len(t.splits[Train].images)} // Train comes first
	var classes []string
	for _, list := range t.splits {
		if list == nil {
			continue
		}
		for _, p := range list.images {
			files.paths, files.names, classes = append(files.paths, t.path(p)), append(files.names, p.name), append(classes, p.class)
		}
	}
	all, s, err := files.decode(options)
	if err != nil {
		return nil, err
	}
	names := files.names
	decoded := &decodedSet{Channels: s.channels, Height: s.height, Width: s.width, images: all.images, Remarks: all.remarks}
	labels := map[string]int32{}
	for i, class := range t.splits[Train].classes() {
		labels[class] = int32(i)
	}
	from, kept, skipped := 0, all.kept, all.skipped
	for split, list := range t.splits {
		if list == nil {
			continue
		}
		to := from + len(list.images)
		part := &decodedPart{Skipped: slices.Clone(list.skipped), Hash: all.hash}
		for len(kept) > 0 && kept[0] < to {
			part.Files = append(part.Files, names[kept[0]])
			part.Labels = append(part.Labels, labels[classes[kept[0]]])
			kept = kept[1:]
		}
		broken := len(list.images) - len(part.Files)
		part.Skipped = append(part.Skipped, skipped[:broken]...)
		skipped, from = skipped[broken:], to
		decoded.Parts[split] = part
	}
	return decoded, nil
}

func (t tree) path(p imageFile) string { return filepath.Join(t.root, filepath.FromSlash(p.name)) }

// splits makes data sets from the decoded parts.
func (d *decodedSet) splits(t tree, options Options) (*Splits, error) {
	classes := t.splits[Train].classes()
	size := d.Channels * d.Height * d.Width
	images := d.images
	for _, remark := range d.Remarks {
		options.remark("%s", remark)
	}
	var all [3]*Dataset
	for split, part := range d.Parts {
		if part == nil {
			continue
		}
		subject := filepath.Join(t.root, filepath.FromSlash(t.splits[split].dir))
		if err := checkSkipped(subject, part.Skipped, len(part.Files), options); err != nil {
			return nil, err
		}
		n := len(part.Files) * size
		dataset := &Dataset{
			Name: nameOf(t.root), Images: images[:n:n], Labels: part.Labels,
			Channels: d.Channels, Height: d.Height, Width: d.Width, Cropped: options.Crop, Bits: options.Bits,
			Classes: len(classes), ClassNames: classes,
			Files: part.Files, Groups: t.splits[split].groups(part.Files), Skipped: part.Skipped, Place: t.root,
			Hashes: map[string]string{nameOf(t.root) + "/...": part.Hash},
		}
		images = images[n:]
		if Split(split) == Train {
			for class, count := range dataset.Counts() {
				if count == 0 {
					return nil, errors.Errorf("datasets: %s: must have a readable image of class %s. Skipped:\n  %s", subject,
						classes[class], strings.Join(part.Skipped[:min(len(part.Skipped), 5)], "\n  "))
				}
			}
		}
		all[split] = dataset
	}
	return &Splits{Train: all[Train], Validation: all[Validation], Test: all[Test]}, nil
}
