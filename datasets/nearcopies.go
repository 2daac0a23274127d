package datasets

import (
	"cmp"
	"math"
	"math/bits"
	"runtime"
	"slices"
	"sort"
	"sync"
)

// Two images are nearly the same if their difference hashes differ in at most nearBits bits, and
// the root mean square of the difference of their thumbnails is at most nearShare of the contrast
// of either. docs/splits.md has the measurements behind both.
const (
	nearBits  = 3
	nearShare = 0.08
)

// sketch summarises an image, so that most pairs are told apart without comparing their pixels.
type sketch struct {
	at   place
	hash uint64
	// mean is the mean of the thumbnail, and contrast the standard deviation of its values around
	// the mean of their channel.
	mean, contrast float64
}

// sketches returns the sketches of the images of all splits, except for those without any contrast.
func sketches(splits *Splits) []sketch {
	var all []sketch
	for split, d := range splits.all() {
		for i := range d.Len() {
			all = append(all, sketch{at: place{d, split, i}})
		}
	}
	var workers sync.WaitGroup
	size := max(1, (len(all)+runtime.GOMAXPROCS(0)-1)/runtime.GOMAXPROCS(0))
	for part := range slices.Chunk(all, size) {
		workers.Go(func() {
			var small []byte
			for i := range part {
				s := &part[i]
				d := s.at.dataset
				image := d.Image(s.at.index)
				small = thumbnail(small[:0], image, d.Channels, d.Height, d.Width)
				s.hash = differenceHash(small, d.Channels, min(d.Height, thumbnailSide), min(d.Width, thumbnailSide))
				s.mean, s.contrast = contrastOf(small, d.Channels)
			}
		})
	}
	workers.Wait()
	return slices.DeleteFunc(all, func(s sketch) bool { return s.contrast == 0 })
}

// contrastOf returns the mean and the contrast of a thumbnail.
func contrastOf(values []byte, channels int) (mean, contrast float64) {
	plane := len(values) / channels
	variance := 0.0
	for c := range channels {
		sum, squares := 0, 0
		for _, v := range values[c*plane:][:plane] {
			sum += int(v)
			squares += int(v) * int(v)
		}
		mean += float64(sum)
		variance += float64(squares*plane-sum*sum) / float64(plane)
	}
	n := float64(len(values))
	return mean / n, math.Sqrt(variance / n)
}

// nearCopies finds the images that are nearly the same as an image in an earlier split, in the
// order train, test, validation. It returns pairs of such an image and the first one that it
// resembles, in the order of the splits.
//
// Hashes that differ in at most nearBits bits agree in at least one of nearBits+1 bands. Only
// images with an equal band are compared, and only if their means differ by at most nearShare of
// their contrast. This holds for all images that are nearly the same.
func nearCopies(splits *Splits) [][2]place {
	all := sketches(splits)
	first := map[place]place{}
	thumbnails := map[place][]byte{}
	keys, hashes := make([]bandKey, len(all)), make([]uint64, len(all))
	for band := range nearBits + 1 {
		for i, s := range all {
			keys[i] = newBandKey(s.hash>>(band*bandBits)&(1<<bandBits-1), s.mean, i)
		}
		slices.Sort(keys)
		for i, key := range keys {
			hashes[i] = all[key.index()].hash
		}
		for i, key := range keys {
			a := &all[key.index()]
			last := newBandKey(key.band(), a.mean+nearShare*a.contrast, 1<<32-1)
			end := i + 1 + sort.Search(len(keys)-i-1, func(k int) bool { return keys[i+1+k] > last })
			for k, hash := range hashes[i+1 : end] {
				if bits.OnesCount64(hash^a.hash) > nearBits {
					continue
				}
				b := &all[keys[i+1+k].index()]
				if a.at.split == b.at.split || firstBand(hash^a.hash) < band ||
					math.Abs(a.mean-b.mean) > nearShare*min(a.contrast, b.contrast) {
					continue
				}
				later, earlier := a.at, b.at
				if later.split < earlier.split {
					later, earlier = earlier, later
				}
				if known, found := first[later]; found && known.compare(earlier) <= 0 {
					continue
				}
				if nearlySame(a, b, thumbnails) {
					first[later] = earlier
				}
			}
		}
	}
	var pairs [][2]place
	for later, earlier := range first {
		pairs = append(pairs, [2]place{later, earlier})
	}
	slices.SortFunc(pairs, func(a, b [2]place) int { return a[0].compare(b[0]) })
	return pairs
}

// bandKey orders sketches by a band of their hash, and within a band by their mean, rounded down:
// from the highest bit, the band, the mean in 256ths, and the number of the sketch.
type bandKey uint64

const bandBits = 64 / (nearBits + 1)

func newBandKey(band uint64, mean float64, index int) bandKey {
	return bandKey(band<<48 | uint64(min(mean*256, 1<<16-1))<<32 | uint64(index))
}

func (k bandKey) band() uint64 { return uint64(k) >> 48 }

func (k bandKey) index() int { return int(k & (1<<32 - 1)) }

// firstBand returns the number of the first band in which a difference of hashes is 0.
func firstBand(difference uint64) int {
	band := 0
	for difference>>(band*bandBits)&(1<<bandBits-1) != 0 {
		band++
	}
	return band
}

// compare orders places by split and number.
func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.split, q.split), cmp.Compare(p.index, q.index))
}

// nearlySame compares the thumbnails of two images. It keeps them in thumbnails.
func nearlySame(a, b *sketch, thumbnails map[place][]byte) bool {
	least := min(a.contrast, b.contrast)
	if math.Abs(a.contrast-b.contrast) > nearShare*least {
		return false
	}
	x, y := a.at.thumbnail(thumbnails), b.at.thumbnail(thumbnails)
	limit, sum := int(nearShare*nearShare*least*least*float64(len(x))), 0
	for len(x) > 0 {
		n := min(len(x), 64)
		for i, v := range x[:n] {
			d := int(v) - int(y[i])
			sum += d * d
		}
		if sum > limit {
			return false
		}
		x, y = x[n:], y[n:]
	}
	return true
}

// thumbnail returns an image's thumbnail, which is the image itself if that is small.
func (p place) thumbnail(known map[place][]byte) []byte {
	d := p.dataset
	if max(d.Height, d.Width) <= thumbnailSide {
		return d.Image(p.index)
	}
	small := known[p]
	if small == nil {
		small = thumbnail(nil, d.Image(p.index), d.Channels, d.Height, d.Width)
		known[p] = small
	}
	return small
}
