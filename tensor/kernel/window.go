package kernel

// window is the geometry shared by the three directions of a convolution.
//
// A tile works on a padded copy of the images it needs, laid out as [images C paddedH paddedW] in
// the worker's scratch memory. The element that tap (c, r, s) of output pixel (image, p, q) reads
// lies there at pixels[pixel] + taps[tap]. The matrix of image patches is thus a sum of two tables,
// and packing it in either orientation needs no arithmetic on coordinates.
//
// For a 3 x 3 filter on a padded line of 10 elements, taps are 0, 1, 2, 10, 11, 12, 20, 21, 22, and
// the pixels of the first output line are 0, 1, 2 and so on. With a stride of 2 and split lines,
// taps are 0, 5, 1, 10, 15, 11, 20, 25, 21, and the pixels are the same.
type window struct {
	channels, height, width int // of an image
	spacingH, spacingW      int // distance in the padded copy between adjacent elements of the image
	padH, padW              int // position of an image's element (0, 0) in the padded copy; may be negative
	strideH                 int // padded rows from one output row to the next
	batch, outH, outW       int // output pixels are [batch outH outW]
	images, rows            int // images and rows of output pixels of a full tile
	paddedH, paddedW        int
	taps                    []int32      // [C R S]
	pixels                  []int32      // [images rows outW], padded to a multiple of panelColumns
	panels                  []pixelPanel // the same pixels, prepared for packing
	halves                  int          // half panels of a line
	inSource                bool         // whether images are read where they are, not in a padded copy
	split                   bool         // whether lines of the padded copy are the even columns, then the odd ones
	places                  []int32      // for reading in place, see findPlaces
}

// pixelPanel holds the pixels of one panel. In most panels each half consists of two runs of
// contiguous elements, because it crosses at most one line end; the assembly copies runs by
// vectors. runs holds first, second and split for each half: element j of the half lies at first+j
// if j < split, else at second+j.
type pixelPanel struct {
	pixels [panelColumns]int32
	runs   [6]int32
	simple bool  // whether runs describes pixels
	whole  bool  // whether all pixels are of one image
	output int32 // offset in the output of the first pixel, from the tile's first
}

// slack is the number of elements after the padded copy that whole vectors may read.
const slack = panelColumns

// splitColumns divides the lines of the padded copy into halves, for output pixels that are two
// columns apart: the elements that a tap reads for consecutive pixels are then consecutive. Lines
// too short for the assembly that divides them are left as they are.
func (w *window) splitColumns(horizontal axis) {
	w.split = horizontal.stride == 2 && w.width >= panelColumns
}

// column returns the position of a column in a line of the padded copy.
func (w *window) column(x int) int {
	if w.split {
		return x%2*(w.paddedW/2) + x/2
	}
	return x
}

// axis is one axis of a window.
type axis struct{ taps, dilation, stride int }

// build computes the tables for the given number of output channels. images and rows must have been
// chosen.
func (w *window) build(vertical, horizontal axis, outputs int) {
	w.strideH = vertical.stride
	w.inSource = w.pointwise(vertical, horizontal)
	w.paddedH = (w.rows-1)*vertical.stride + (vertical.taps-1)*vertical.dilation + 1
	w.paddedW = (w.outW-1)*horizontal.stride + (horizontal.taps-1)*horizontal.dilation + 1
	if w.inSource {
		w.paddedH, w.paddedW = w.height, w.width
	}
	step := horizontal.stride
	if w.split {
		w.paddedW, step = ceilDiv(w.paddedW, 2)*2, 1
	}
	w.taps = make([]int32, 0, w.channels*vertical.taps*horizontal.taps)
	for c := range w.channels {
		for r := range vertical.taps {
			for s := range horizontal.taps {
				at := (c*w.paddedH+r*vertical.dilation)*w.paddedW + w.column(s*horizontal.dilation)
				w.taps = append(w.taps, int32(at))
			}
		}
	}
	for image := range w.images {
		for p := range w.rows {
			for q := range w.outW {
				at := (image*w.channels*w.paddedH+p*vertical.stride)*w.paddedW + q*step
				w.pixels = append(w.pixels, int32(at))
			}
		}
	}
	// The last panel continues with pixels that are computed but not stored.
	for len(w.pixels)%panelColumns != 0 {
		w.pixels = append(w.pixels, w.pixels[len(w.pixels)-1]+1)
	}
	w.panels = make([]pixelPanel, len(w.pixels)/panelColumns)
	run := w.rows * w.outW
	for i := range w.panels {
		p, j := &w.panels[i], i*panelColumns
		p.fill(w.pixels[j:][:panelColumns])
		p.whole = j/run == (j+panelColumns-1)/run
		p.output = int32(j/run*outputs*w.outH*w.outW + j%run)
	}
	if step == 1 {
		w.findPlaces(outputs)
	}
}

// maxInSource bounds the images that are read where they are: without assembly they are copied as a
// whole.
const maxInSource = 1 << 21

// pointwise reports whether each output reads one pixel, at the same place, and lines fill the
// halves of panels well enough to be read in place.
func (w *window) pointwise(vertical, horizontal axis) bool {
	const half = panelColumns / 2
	return vertical == axis{1, vertical.dilation, 1} && horizontal == axis{1, horizontal.dilation, 1} &&
		w.padH == 0 && w.padW == 0 && w.spacingH == 1 && w.spacingW == 1 && w.outH == w.height && w.outW == w.width &&
		w.outW >= half && float64(ceilDiv(w.outW, half)*half) <= maxOverlap*float64(w.outW) && w.channels*w.height*w.width <= maxInSource
}

// maxOverlap bounds the pixels that pointwise convolutions compute twice, where halves overlap,
// relative to all: 49 pixels take seven halves.
const maxOverlap = 56.0 / 49

// findPlaces sets places, the table for reading panels in place: for each panel, the offsets of its
// two halves in the padded copy and in the output. A half is eight pixels of one line. If a line is
// not a multiple of eight pixels, its last two halves overlap so that none extends beyond its end;
// both are then in the same panel, which adds to the output only once.
func (w *window) findPlaces(outputs int) {
	const half = panelColumns / 2
	count := ceilDiv(w.outW, half)
	overlap := count*half - w.outW
	if w.outW < half {
		return
	}
	w.halves = count
	number := 0
	var even [4]int32
	for line := range w.images * w.rows {
		image, row := line/w.rows, line%w.rows
		q, left := 0, overlap
		for range count {
			input := w.pixels[line*w.outW+q]
			output := int32(image*outputs*w.outH*w.outW + row*w.outW + q)
			if number%2 == 0 {
				even[0], even[2] = input, output
			} else {
				w.places = append(w.places, even[0], input, even[2], output)
			}
			q += half
			if number%2 == 0 { // the next half belongs to the same panel
				q, left = q-left, 0
			}
			number++
		}
	}
	if number%2 == 1 {
		w.places = append(w.places, even[0], even[0], even[2], even[2])
	}
}

// inPlace reports whether reading panels in place costs less than packing them. It weighs the
// pixels that overlapping halves compute twice against packing, which takes three cycles per row of
// a panel where each group of rows takes six, and against a call per panel.
func (w *window) inPlace(outputs int) bool {
	if w.inSource {
		return !w.packsSource(outputs)
	}
	return len(w.places) > 0 && float64(w.halves*panelColumns/2) <= float64(w.outW)*(1.1+0.5/float64(splitRows(outputs).count))
}

// packsSource reports whether it costs less to pack a pointwise convolution's panels. Each group of
// rows reads the image in place again, eight pixels of a channel at a time, which is slow if the
// image is not in the nearest cache. In AVX-512, whose tiles are wider than a panel, packing takes
// less unless there are so few channels that a tile's products take little longer than packing.
// The bits are the same.
func (w *window) packsSource(outputs int) bool {
	if isa == avx512 {
		return w.channels > 48
	}
	return w.channels >= 3*outputs && w.height*w.width > 512
}

// fill copies sixteen pixels and finds their runs.
func (p *pixelPanel) fill(pixels []int32) {
	copy(p.pixels[:], pixels)
	p.simple = true
	const half = panelColumns / 2
	for h := range 2 {
		x := pixels[h*half:][:half]
		split := 1
		for split < half && x[split] == x[split-1]+1 {
			split++
		}
		second := x[0]
		if split < half {
			second = x[split] - int32(split)
		}
		copy(p.runs[3*h:], []int32{x[0], second, int32(split)})
		for j := split + 1; j < half; j++ {
			p.simple = p.simple && x[j] == x[j-1]+1
		}
	}
}

// paddedSize returns the number of elements of a tile's padded copy and its slack, rounded up to
// whole rows of a panel, so that the panels behind it are aligned to cache lines if it is.
func (w *window) paddedSize() int {
	return ceilDiv(w.images*w.channels*w.paddedH*w.paddedW+slack, panelColumns) * panelColumns
}

// exact reports whether the padded copy of an image would equal the image.
func (w *window) exact() bool {
	return w.padH == 0 && w.padW == 0 && w.spacingH == 1 && w.spacingW == 1 && w.paddedH == w.height && w.paddedW == w.width
}

// Limits of a tile of output pixels.
const (
	// tilePixels is the target number of output pixels of a tile. Small tiles waste columns of the
	// last panel and read the filter more often.
	tilePixels = 1024
	// tileElements bounds the padded copy: 256 Ki float32 are 1 MiB.
	tileElements = 1 << 18
	// tileCount is the target number of tiles of a call, so that a pool of workers has enough to
	// divide among themselves.
	tileCount = 16
)

// choose sets images and rows: whole images if several fit into a tile, otherwise rows of one
// image. Among numbers of images it prefers those that leave few columns of the last panel unused.
func (w *window) choose(vertical, horizontal axis) {
	line := w.channels * ((w.outW-1)*horizontal.stride + (horizontal.taps-1)*horizontal.dilation + 1)
	lines := func(rows int) int { return (rows-1)*vertical.stride + (vertical.taps-1)*vertical.dilation + 1 }
	w.images, w.rows = 1, w.outH
	pixels := w.outH * w.outW
	if pixels <= tilePixels && w.batch >= tileCount/2 {
		least := 0.0
		most := min(tilePixels/pixels, max(1, w.batch/tileCount), max(1, tileElements/(line*lines(w.outH))))
		for n := 1; n <= most; n++ {
			use := float64(n*pixels) / float64(ceilDiv(n*pixels, panelColumns)*panelColumns)
			if use >= least {
				w.images, least = n, use
			}
		}
		return
	}
	// Large images, or few: a tile is some rows of one image. With fewer images than tileCount,
	// tiles are smaller so that all threads have one, but not less than four panels.
	wanted := max(ceilDiv(tilePixels, w.outW), 1)
	if w.batch < tileCount {
		wanted = min(wanted, max(ceilDiv(w.outH, ceilDiv(tileCount, w.batch)), ceilDiv(4*panelColumns, w.outW)))
	}
	w.rows = min(wanted, w.outH)
	for w.rows > 1 && line*lines(w.rows) > tileElements {
		w.rows--
	}
}

// tiles returns the number of tiles that cover the output.
func (w *window) tiles() int { return ceilDiv(w.batch, w.images) * ceilDiv(w.outH, w.rows) }

// part is the output pixels of one tile.
type part struct {
	image, images int
	row, rows     int
}

// part returns the output pixels of a tile.
func (w *window) part(tile, batch int) part {
	across := ceilDiv(w.outH, w.rows)
	p := part{image: tile / across * w.images, row: tile % across * w.rows}
	p.images = min(w.images, batch-p.image)
	p.rows = min(w.rows, w.outH-p.row)
	return p
}

// parts returns the first image of each chunk of tiles, and the end; nil if tiles are not whole
// images.
func (w *window) parts(chunks int) (parts []int) {
	if w.rows < w.outH {
		return nil
	}
	for i := range chunks + 1 {
		lo, _ := splitRange(w.tiles(), chunks, i)
		parts = append(parts, min(w.batch, lo*w.images))
	}
	return parts
}

// partialElements bounds the partial gradients: 512 Ki float32 are 2 MiB.
const partialElements = 1 << 19
