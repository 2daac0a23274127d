package datasets

import (
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// numbered returns n images of one byte each, with the classes in turn.
func numbered(t *testing.T, n, classes int) *Dataset {
	t.Helper()
	pixels, labels := make([]byte, n), make([]int32, n)
	for i := range n {
		pixels[i], labels[i] = byte(i), int32(i%classes)
	}
	d, err := New("numbered", pixels, labels, 1, 1, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestNew(t *testing.T) {
	d := numbered(t, 100, 3)
	if !cmp.Equal(d.ClassNames, []string{"0", "1", "2"}) || d.Classes != 3 {
		t.Errorf("classes %v", d.ClassNames)
	}
	wantMoments(t, d)
	if even, err := New("even", []byte{7, 7}, []int32{0, 1}, 1, 1, 1, nil); err != nil || even.Std[0] != 1 {
		t.Errorf("one value everywhere: %v", err)
	}
	for _, test := range []struct {
		pixels []byte
		labels []int32
		shape  [3]int
		want   string
	}{
		{nil, []int32{}, [3]int{1, 1, 1}, "own: must have at least 1 image, got none"},
		{nil, nil, [3]int{1, 1, 1}, "own: must have at least 1 image, got none"},
		{[]byte{1, 2, 3}, nil, [3]int{1, 2, 1}, "own: images must have 2 bytes each, got 3 bytes"},
		{[]byte{1, 2}, []int32{0}, [3]int{1, 1, 1}, "own: must have a label for each of 2 images of 1x1x1, got 1"},
		{[]byte{1}, []int32{-1}, [3]int{1, 1, 1}, "own: label 0 must be 0 or more and below 1, got -1"},
		{[]byte{1}, []int32{1 << 30}, [3]int{1, 1, 1}, "own: labels must be below 65536, got 1073741824"},
		{[]byte{1}, []int32{0}, [3]int{0, 1, 1}, "own: images must have at least 1x1x1 values, got 0x1x1"},
		{[]byte{1}, []int32{0}, [3]int{-1, 1, 1}, "own: images must have at least 1x1x1 values, got -1x1x1"},
	} {
		_, err := New("own", test.pixels, test.labels, test.shape[0], test.shape[1], test.shape[2], nil)
		wantError(t, err, "datasets: own: ", test.want)
	}
	_, err := New("own", []byte{1, 2}, []int32{0, 2}, 1, 1, 1, []string{"a", "b"})
	wantError(t, err, "own: label 1 must be 0 or more and below 2, got 2")
	_, err = New("own", []byte{1, 2}, nil, 1, 1, 1, []string{"a", "b"})
	wantError(t, err, "own: must have labels if it has class names")
	_, err = New("own", []byte{1, 2}, []int32{0, 2}, 1, 1, 1, []string{"a", "b", "a"})
	wantError(t, err, `own: class names must be distinct, got "a" for classes 0 and 2`)
	_, err = New("own", []byte{1, 2}, []int32{0, 1}, 1<<20, 1<<20, 1<<20, nil)
	wantError(t, err, "own: must have at least 1 image of 1048576x1048576x1048576 bytes, got 2 bytes")
	unlabelled, err := New("own", []byte{0, 255, 0, 255}, nil, 1, 2, 1, nil)
	if err != nil || unlabelled.Len() != 2 || unlabelled.Labels != nil || unlabelled.Classes != 0 || unlabelled.Mean[0] != 0.5 {
		t.Errorf("images without labels: %+v, %v", unlabelled, err)
	}
}

func TestStratified(t *testing.T) {
	d := numbered(t, 103, 4) // 26, 26, 26, 25
	rest, part, err := d.Stratified(0.25, 7)
	if err != nil {
		t.Fatal(err)
	}
	// 6.5 is rounded away from zero.
	if diff := cmp.Diff([]int{7, 7, 7, 6}, part.Counts()); diff != "" {
		t.Error(diff)
	}
	both := slices.Concat(rest.Images, part.Images)
	slices.Sort(both)
	if !slices.Equal(both, d.Images) || !slices.IsSorted(part.Images) || !slices.IsSorted(rest.Images) {
		t.Error("the parts are not the whole, in order")
	}
	for i, label := range part.Labels {
		if int(part.Images[i])%4 != int(label) {
			t.Errorf("image %d has label %d", part.Images[i], label)
		}
	}
	if !slices.Equal(part.Mean, d.Mean) || !slices.Equal(rest.Std, d.Std) {
		t.Error("other moments than those of the whole")
	}
	_, again, err := d.Stratified(0.25, 7)
	if err != nil || !slices.Equal(again.Images, part.Images) {
		t.Error("the same seed gives another part, or ", err)
	}
	_, other, err := d.Stratified(0.25, 8)
	if err != nil || slices.Equal(other.Images, part.Images) {
		t.Error("another seed gives the same part, or ", err)
	}
	// Each half of the images is drawn equally often, up to chance.
	low := 0
	for seed := range uint64(100) {
		if _, part, err = d.Stratified(0.25, seed); err != nil {
			t.Fatal(err)
		}
		for _, pixel := range part.Images {
			if pixel < 52 {
				low++
			}
		}
	}
	if low < 1250 || low > 1450 {
		t.Errorf("%d of 2700 are of the first half", low)
	}
	for _, share := range []float64{0, 1, -1} {
		_, _, err := d.Stratified(share, 0)
		wantError(t, err, "numbered: fraction must be inside (0, 1), got")
	}
	_, _, err = numbered(t, 3, 3).Stratified(0.5, 0)
	wantError(t, err, "numbered: a class must have at least 2 images to draw one from, got at most 1")
	if rest, part, err = numbered(t, 5, 3).Stratified(0.01, 0); err != nil || part.Len() != 2 || rest.Len() != 3 {
		t.Error("at least one of a class of two: ", err)
	}
}

// Drawn by name, most pictures stay on their side when others come.
func TestStratifiedByName(t *testing.T) {
	named := func(n int) *Dataset {
		d := numbered(t, n, 1)
		for i := range n {
			d.Files = append(d.Files, strconv.Itoa(i*7919))
		}
		return d
	}
	_, before, err := named(200).Stratified(0.25, 1)
	if err != nil {
		t.Fatal(err)
	}
	_, after, err := named(204).Stratified(0.25, 1)
	if err != nil {
		t.Fatal(err)
	}
	moved := 0
	for _, name := range before.Files {
		if !slices.Contains(after.Files, name) {
			moved++
		}
	}
	if moved > 4 {
		t.Errorf("4 more pictures moved %d of %d", moved, before.Len())
	}
}

func TestWithClasses(t *testing.T) {
	d := numbered(t, 10, 4)
	d.Files = []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}
	some, err := d.WithClasses("3", "1")
	if err != nil {
		t.Fatal(err)
	}
	without, err := d.WithoutClasses("00000", "2")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(some, without); diff != "" {
		t.Error(diff)
	}
	if !slices.Equal(some.Images, []byte{1, 3, 5, 7, 9}) || !slices.Equal(some.Labels, []int32{0, 1, 0, 1, 0}) ||
		!cmp.Equal(some.ClassNames, []string{"1", "3"}) || some.Classes != 2 || some.Files[4] != "9" {
		t.Errorf("%+v", some)
	}
	if err := some.Validate(); err != nil {
		t.Error(err)
	}
	_, err = d.WithClasses("4")
	wantError(t, err, `numbered: classes must be some of 0, 1, 2, 3, got "4"`)
	plain := *d
	plain.Labels, plain.ClassNames, plain.Classes = nil, nil, 0
	_, err = plain.WithClasses("1")
	wantError(t, err, "numbered: must have labels to select classes")
	_, err = d.WithoutClasses("x")
	wantError(t, err, `numbered: classes must be some of 0, 1, 2, 3, got "x"`)
	_, err = d.WithoutClasses("0", "1", "2", "3")
	wantError(t, err, "numbered: must have an image of the classes")
	first, err := d.Slice(0, 1)
	if err != nil || !slices.Equal(first.Files, []string{"0"}) {
		t.Errorf("files of a slice: %v, %v", first.Files, err)
	}
	_, err = first.WithClasses("1")
	wantError(t, err, "numbered: must have an image of the classes 1")
}

// Data in any order give their first images, data sorted by class some of every class, each image
// at most once.
func TestFirst(t *testing.T) {
	for name, c := range map[string]struct {
		labels []int32
		n      int
		want   string
	}{
		"in any order":           {[]int32{0, 0, 1, 1, 0}, 3, "012"},
		"sorted":                 {[]int32{0, 0, 0, 1, 1, 2, 2, 2}, 4, "0246"},
		"sorted, but all":        {[]int32{0, 0, 1, 1}, 4, "0123"},
		"sorted, all but one":    {[]int32{0, 0, 1, 1, 1}, 4, "0123"},
		"sorted, one of a class": {[]int32{0, 1, 2, 3}, 2, "02"},
		"one class":              {[]int32{1, 1, 1, 1}, 2, "01"},
		"no labels":              {nil, 2, "01"},
	} {
		t.Run(name, func(t *testing.T) {
			d := &Dataset{Name: name, Images: []byte("01234567")[:max(4, len(c.labels))], Labels: c.labels, Channels: 1, Height: 1, Width: 1}
			got, err := d.First(c.n)
			if err != nil {
				t.Fatal(err)
			}
			if string(got.Images) != c.want {
				t.Errorf("images %s, want %s", got.Images, c.want)
			}
			for i, at := range d.FirstIndices(c.n) {
				if d.Images[at] != c.want[i] {
					t.Errorf("index %d is %d, want %c", i, at, c.want[i])
				}
			}
			for i := range got.Labels {
				if want := d.Labels[got.Images[i]-'0']; got.Labels[i] != want {
					t.Errorf("label %d is %d, want %d", i, got.Labels[i], want)
				}
			}
		})
	}
	for _, n := range []int{-1, 0, 6} {
		if _, err := small().First(n); err == nil {
			t.Errorf("first %d of 5: no error", n)
		}
	}
}
