package datasets

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/pkg/errors"
)

// imageGroup is a group of images, which are drawn into a split together.
type imageGroup struct {
	name    string
	key     uint64 // groups are drawn in ascending order of the key
	images  []int
	classes []int32
	counts  []int // number of images of each of classes
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

// move draws a group or, if it is drawn, puts it back.
func (w *groupDraw) move(g *imageGroup) {
	g.drawn = !g.drawn
	for i, class := range g.classes {
		count := g.counts[i]
		if !g.drawn {
			count = -count
		}
		w.drawn[class] += count
		w.left[class] -= count
	}
}

// exchange tries to replace each group that was drawn: the first of up to most other groups that
// brings the classes closer to their targets takes its place.
func (w *groupDraw) exchange(groups []*imageGroup) {
	const most = 200 // groups tried for each one that was drawn
	for _, g := range groups {
		if !g.drawn {
			continue
		}
		w.move(g)
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
		w.move(best)
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
			w.move(g)
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
			w.move(best)
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

// mixed is the finalizer of SplitMix64 (G. Steele, D. Lea and C. Flood, 2014).
func mixed(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
