package datasets

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/pkg/errors"
)

// The forms of Options.Group other than a regular expression, which has a capture group.
const (
	groupByParent = "parent"
	groupByColumn = "column="
)

// GroupColumn returns NAME if Group is column=NAME, or "".
func (o Options) GroupColumn() string {
	column, _ := strings.CutPrefix(o.Group, groupByColumn)
	if column == o.Group {
		return ""
	}
	return strings.TrimSpace(column)
}

// groupPattern returns the pattern of the groups, or nil if they are not given by a pattern.
func (o Options) groupPattern() (*regexp.Regexp, error) {
	if o.Group == "" || o.Group == groupByParent || o.GroupColumn() != "" {
		return nil, nil
	}
	const forms = "must be parent, column=NAME, or a regular expression with a capture group, such as ^(.*)_"
	pattern, err := regexp.Compile(o.Group)
	if err != nil {
		return nil, invalid("Group", forms+", got %q: %v", o.Group, err)
	}
	if pattern.NumSubexp() == 0 {
		return nil, invalid("Group", forms+", got %q", o.Group)
	}
	return pattern, nil
}

// groups finds the groups of the images of all splits, as Options.Group requests, and refuses
// groups that are in several splits of the data.
func (o Options) groups(splits *Splits) error {
	if o.Group == "" {
		return nil
	}
	owners := map[string]Split{}
	crossing, first := 0, ""
	for split, d := range splits.all() {
		if d == nil {
			continue
		}
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
			splits.name(), crossing, first)
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

// all iterates over the splits in the order of Split; those that are not there are nil.
func (s *Splits) all() func(yield func(Split, *Dataset) bool) {
	return func(yield func(Split, *Dataset) bool) {
		for split, d := range [3]*Dataset{Train: s.Train, Validation: s.Validation, Test: s.Test} {
			if !yield(Split(split), d) {
				return
			}
		}
	}
}

// imageGroup is a group of images, which are drawn together.
type imageGroup struct {
	name    string
	key     uint64 // its place in the order of drawing
	images  []int
	classes []int32
	counts  []int // of images of each of classes
	drawn   bool
}

// imageGroups returns the groups of the images in the order of drawing, which depends on the seed
// and on their names only.
func (d *Dataset) imageGroups(seed uint64) []*imageGroup {
	byName := map[string]*imageGroup{}
	var groups []*imageGroup
	for i, name := range d.Groups {
		g := byName[name]
		if g == nil {
			hash := fnv.New64a()
			hash.Write([]byte(name))
			g = &imageGroup{name: name, key: mixed(mixed(hash.Sum64()) ^ mixed(^seed))}
			byName[name], groups = g, append(groups, g)
		}
		at := slices.Index(g.classes, d.Labels[i])
		if at < 0 {
			at = len(g.classes)
			g.classes, g.counts = append(g.classes, d.Labels[i]), append(g.counts, 0)
		}
		g.counts[at]++
		g.images = append(g.images, i)
	}
	slices.SortFunc(groups, func(a, b *imageGroup) int {
		return cmp.Or(cmp.Compare(a.key, b.key), strings.Compare(a.name, b.name))
	})
	return groups
}

// groupDraw draws groups so that the number of images of each class comes close to its target.
type groupDraw struct {
	target      []float64 // by class
	drawn, left []int     // images by class
}

// excess returns by how much drawing a group increases the sum over the classes of
// (drawn - target)^2 / target, and whether each of the group's classes keeps an image.
func (w *groupDraw) excess(g *imageGroup) (sum float64, keeps bool) {
	keeps = true
	for i, class := range g.classes {
		before := float64(w.drawn[class]) - w.target[class]
		after := before + float64(g.counts[i])
		sum += (after*after - before*before) / w.target[class]
		keeps = keeps && w.left[class] > g.counts[i]
	}
	return sum, keeps
}

func (w *groupDraw) putBack(g *imageGroup) {
	g.drawn = false
	for i, class := range g.classes {
		w.drawn[class] -= g.counts[i]
		w.left[class] += g.counts[i]
	}
}

func (w *groupDraw) take(g *imageGroup) {
	g.drawn = true
	for i, class := range g.classes {
		w.drawn[class] += g.counts[i]
		w.left[class] -= g.counts[i]
	}
}

// exchange replaces each group that was drawn by the first of some others that brings the classes
// closer to their targets.
func (w *groupDraw) exchange(groups []*imageGroup) {
	const most = 200 // tried for each
	for _, g := range groups {
		if !g.drawn {
			continue
		}
		w.putBack(g)
		before, _ := w.excess(g)
		best, tried := g, 0
		for _, other := range groups {
			if other.drawn || other == g {
				continue
			}
			if tried++; tried > most {
				break
			}
			if excess, keeps := w.excess(other); keeps && excess < before {
				best = other
				break
			}
		}
		w.take(best)
	}
}

// drawGroups draws whole groups with about a fraction of the images of each class, as Stratified
// documents, and reports which images are drawn.
func (d *Dataset) drawGroups(fraction float64, seed uint64) ([]bool, error) {
	w := groupDraw{target: make([]float64, d.Classes), drawn: make([]int, d.Classes), left: d.Counts()}
	for class, count := range w.left {
		w.target[class] = fraction * float64(count)
	}
	groups := d.imageGroups(seed)
	for _, g := range groups {
		if excess, keeps := w.excess(g); keeps && excess < 0 {
			w.take(g)
		}
	}
	w.exchange(groups)
	for class := range d.Classes {
		if w.drawn[class] > 0 {
			continue
		}
		var best *imageGroup
		least := 0.0
		for _, g := range groups {
			if g.drawn || !slices.Contains(g.classes, int32(class)) {
				continue
			}
			if excess, keeps := w.excess(g); keeps && (best == nil || excess < least) {
				best, least = g, excess
			}
		}
		if best != nil {
			w.take(best)
		}
	}
	drawn, some := make([]bool, d.Len()), false
	for _, g := range groups {
		for _, i := range g.images {
			drawn[i] = g.drawn
			some = some || g.drawn
		}
	}
	if !some {
		return nil, errors.Errorf("datasets: %s: a class must have at least 2 groups to draw one from, got at most 1 that can be drawn", d.Name)
	}
	return drawn, nil
}

// groups returns the groups of files in the label tables, or nil if there are none.
func (l *listing) groups(files []string) []string {
	byName := map[string]string{}
	for _, image := range l.images {
		if image.group != "" {
			byName[image.name] = image.group
		}
	}
	if len(byName) == 0 {
		return nil
	}
	groups := make([]string, len(files))
	for i, file := range files {
		groups[i] = byName[file]
	}
	return groups
}
