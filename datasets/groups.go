package datasets

import (
	"fmt"
	"path"
	"slices"
)

// groups sets the groups of the images of all splits, as Options.Group requests, and returns an
// error if several splits of the data have the same group.
func (o Options) groups(splits *Splits) error {
	if o.Group == "" {
		return nil
	}
	owners := map[string]Split{}
	crossing, first := 0, ""
	for split, d := range splits.all() {
		if err := o.groupsOf(d, split, splits.Train); err != nil {
			return err
		}
		names := slices.Clone(d.Groups)
		slices.Sort(names)
		names = slices.Compact(names)
		if split == Train && len(names) == 1 {
			return invalid("Group", "%s: must give at least 2 groups, got only %q for all %d images", d.Name, names[0], d.Len())
		}
		for _, name := range names {
			if other, known := owners[name]; known {
				if crossing++; crossing == 1 {
					first = fmt.Sprintf("%q in %s and %s", name, other, split)
				}
				continue
			}
			owners[name] = split
		}
	}
	if crossing > 0 {
		return invalid("Group", "%s: a group must be in one of the data's own splits, got %d in several, such as %s: move them, or leave Group out",
			splits.first().Name, crossing, first)
	}
	return nil
}

// groupsOf sets the groups of a split's images. Images of a split that is not drawn from training
// images may have none.
func (o Options) groupsOf(d *Dataset, split Split, train *Dataset) error {
	if column := o.GroupColumn(); column != "" {
		if d.Groups == nil {
			return invalid("Group", "%s: must have a label table with the column %s next to the images, got none", d.Name, column)
		}
		return nil
	}
	if d.Files == nil {
		return invalid("Group", "%s: images must be files to have groups by their names, got arrays", d.Name)
	}
	pattern, err := o.groupPattern()
	if err != nil {
		return err
	}
	groups, without := make([]string, d.Len()), []string(nil)
	for i, file := range d.Files {
		if pattern == nil {
			groups[i] = path.Dir(file)
		} else if found := pattern.FindStringSubmatch(file); found != nil {
			groups[i] = found[1]
		}
		if groups[i] == "" {
			without = append(without, file)
		}
	}
	switch {
	case len(without) == 0:
		d.Groups = groups
	case len(without) == d.Len() && d != train && train != nil:
		d.Groups = nil
		o.remark("%s: %s files such as %s have no group by %s: whether their groups are among those of other splits is not checked",
			d.Name, split, without[0], o.Group)
	default:
		return invalid("Group", "%s: %s must give a group for each file, got none for %d of %d, such as %s", d.Name, o.Group, len(without), d.Len(), without[0])
	}
	return nil
}
