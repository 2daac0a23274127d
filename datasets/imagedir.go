package datasets

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/pkg/errors"
)

// openImageDir opens an image directory.
func openImageDir(root string, options Options) (*Splits, error) {
	return openTree(func() (tree, error) { return options.scan(root) }, options)
}

// openTree opens the images that scan lists.
func openTree(scan func() (tree, error), options Options) (*Splits, error) {
	found, err := scan()
	if err != nil {
		return nil, err
	}
	if options.Unlabelled && !options.selects() && !found.hasClasses() {
		return options.unlabelled(found.root)
	}
	for _, remark := range found.remarks {
		options.remark("%s", remark)
	}
	if classes := found.classes(); len(classes) < options.MinClasses {
		return nil, errors.WithStack(&FewClassesError{nameOf(found.root), classes, options.MinClasses})
	}
	for split, names := range found.flat {
		for _, name := range names {
			if !(Split(split) == Test && options.Unlabelled) {
				options.remark("%s: left out, since it has %s", filepath.Join(nameOf(found.root), filepath.FromSlash(name)), found.lacks)
			}
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
		// If the files changed meanwhile, they no longer match the key.
		if again, err := scan(); err == nil && again.key(options) == found.key(options) {
			if err := cache.write(decoded); err != nil {
				if options.Cache != "" {
					return nil, errors.WithMessage(err, "datasets: decoded images cannot be cached: set Options.Cache to another directory, or NoCache")
				}
				options.notKept(err)
			}
		}
	}
	splits, err := decoded.splits(found, options)
	if err != nil || found.flat[Test] == nil || !options.Unlabelled {
		return splits, err
	}
	options.Channels, options.Height, options.Width = decoded.Channels, decoded.Height, decoded.Width
	var paths []string
	for _, name := range found.flat[Test] {
		paths = append(paths, filepath.Join(found.root, filepath.FromSlash(name)))
	}
	if splits.Test, err = ReadImages(paths, options); err == nil {
		splits.Test.Name, splits.Test.Place = nameOf(found.root), found.place()
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
	files := imageFiles{subject: t.root}
	var classes []string
	for split, list := range present(t.splits) {
		for _, p := range list.images {
			image := encodedImage{name: p.name, shard: p.shard, row: p.row, inside: p.inside}
			if p.shard == nil {
				image.path = t.path(p)
			}
			files.images, classes = append(files.images, image), append(classes, p.class)
		}
		if split == Train || t.splits[Train] == nil { // Train comes first
			files.shaping = len(files.images)
		}
	}
	all, s, err := files.decode(options)
	if err != nil {
		return nil, err
	}
	decoded := &decodedSet{Channels: s.channels, Height: s.height, Width: s.width, images: all.images, Remarks: all.remarks}
	labels := map[string]int32{}
	for i, class := range t.classes() {
		labels[class] = int32(i)
	}
	from, kept, skipped := 0, all.kept, all.skipped
	for split, list := range present(t.splits) {
		to := from + len(list.images)
		part := &decodedPart{Skipped: slices.Clone(list.skipped), Hash: all.hash}
		for len(kept) > 0 && kept[0] < to {
			part.Files = append(part.Files, files.images[kept[0]].name)
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

// place returns the directory of the files.
func (t tree) place() string {
	if isDir(t.root) {
		return t.root
	}
	return filepath.Dir(t.root)
}

func (t tree) path(p imageFile) string { return filepath.Join(t.root, filepath.FromSlash(p.name)) }

// splits makes data sets from the decoded parts.
func (d *decodedSet) splits(t tree, options Options) (*Splits, error) {
	classes := t.classes()
	size := d.Channels * d.Height * d.Width
	images := d.images
	options.remarkDecoded(d.Remarks)
	var all [3]*Dataset
	for split, part := range present(d.Parts) {
		subject := filepath.Join(t.root, filepath.FromSlash(t.splits[split].dir))
		if err := checkSkipped(subject, part.Skipped, len(part.Files), options); err != nil {
			return nil, err
		}
		n := len(part.Files) * size
		dataset := &Dataset{
			Name: nameOf(t.root), Images: images[:n:n], Labels: part.Labels,
			Channels: d.Channels, Height: d.Height, Width: d.Width, Cropped: options.Crop, Bits: options.Bits,
			Classes: len(classes), ClassNames: classes,
			Files: part.Files, Groups: t.splits[split].groups(part.Files), Skipped: part.Skipped, Place: t.place(), LabelColumn: t.label,
			Hashes: map[string]string{nameOf(t.root) + "/...": part.Hash},
		}
		images = images[n:]
		if split == Train {
			for class, count := range dataset.Counts() {
				if count == 0 {
					return nil, errors.Errorf("datasets: %s: must have a readable image of class %s. Skipped:\n  %s", subject,
						classes[class], strings.Join(part.Skipped[:min(len(part.Skipped), 5)], "\n  "))
				}
			}
		}
		all[split] = dataset
	}
	return newSplits(all), nil
}
