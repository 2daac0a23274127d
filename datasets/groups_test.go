package datasets

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/pkg/errors"
)

// groupsIn returns the distinct groups of a data set.
func groupsIn(d *Dataset) []string {
	all := map[string]bool{}
	for _, group := range d.Groups {
		all[group] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// wantApart fails the test if a group is in several splits, or images of the data are missing.
func wantApart(t *testing.T, splits *Splits, images int) {
	t.Helper()
	owners := map[string]Split{}
	for split, d := range splits.all() {
		if len(d.Groups) != d.Len() {
			t.Fatalf("%v: %d groups, want one for each of %d images", split, len(d.Groups), d.Len())
		}
		images -= d.Len()
		for _, group := range groupsIn(d) {
			if other, known := owners[group]; known {
				t.Errorf("group %q is in %v and %v", group, other, split)
			}
			owners[group] = split
		}
	}
	if images != 0 {
		t.Errorf("%d images are in no split", images)
	}
}

// trackNames names the frames of tracks of two classes.
func trackNames(tracks, frames int) (names []string) {
	for track := range tracks {
		for frame := range frames {
			names = append(names, fmt.Sprintf("a/p%d/%05d_%05d.png", track%4, track, frame), fmt.Sprintf("b/p%d/%05d_%05d.png", track%4, track, frame))
		}
	}
	return names
}

func TestOpenByGroup(t *testing.T) {
	root := dots(t, trackNames(20, 5)...)
	for _, group := range []string{`^(.*)_`, `/(\d+)_`, "parent", `(p\d)/`} {
		options := isolated(t)
		options.Group = group
		splits, err := Open(root, options)
		if err != nil {
			t.Fatalf("%s: %v", group, err)
		}
		wantApart(t, splits, 200)
		if splits.Train.Remarks != nil {
			t.Errorf("%s: remarks %q", group, splits.Train.Remarks)
		}
		for split, d := range splits.all() {
			if counts := d.Counts(); counts[0] == 0 || counts[1] == 0 {
				t.Errorf("%s: %v has %v images of the classes", group, split, counts)
			}
		}
		if group == `^(.*)_` && (!slices.Equal(splits.Test.Counts(), []int{20, 20}) || !slices.Equal(splits.Validation.Counts(), []int{15, 15})) {
			t.Errorf("test %v, validation %v, want 20 and 15 images of each class", splits.Test.Counts(), splits.Validation.Counts())
		}
		again, err := Open(root, options)
		if err != nil || !slices.Equal(again.Test.Files, splits.Test.Files) {
			t.Errorf("%s: another draw the second time: %v", group, err)
		}
		if test, err := Load(root, Test, options); err != nil || !slices.Equal(test.Files, splits.Test.Files) {
			t.Errorf("%s: Load has another test split: %v", group, err)
		}
	}
}

// groupTable writes a label table whose images are numbered.
func groupTable(t *testing.T, header string, row func(i int) string) string {
	t.Helper()
	names := make([]string, 24)
	rows := []string{header}
	for i := range names {
		names[i] = fmt.Sprintf("images/%d.png", i)
		rows = append(rows, row(i))
	}
	root := dots(t, names...)
	write(t, []byte(strings.Join(rows, "\n")), root, "images", "labels.csv")
	return root
}

func TestOpenByGroupColumn(t *testing.T) {
	for header, row := range map[string]func(i int) string{
		"file,label,Patient": func(i int) string { return fmt.Sprintf("%d.png,%d,patient %d", i, i%2, i/4) },
		// The headings are not known: the column of groups leaves one for the classes.
		"picture,diagnosis,patient": func(i int) string { return fmt.Sprintf("%d.png,%d,patient %d", i, i%2, i/4) },
	} {
		root := groupTable(t, header, row)
		options := isolated(t)
		options.Group = "column=patient"
		for range 2 { // the second time from the cache
			splits, err := Open(root, options)
			if err != nil {
				t.Fatal(err)
			}
			wantApart(t, splits, 24)
			if got := splits.Test.Groups[0]; !strings.HasPrefix(got, "patient ") {
				t.Errorf("group %q", got)
			}
		}
	}
}

func TestGroupErrors(t *testing.T) {
	tracks := dots(t, trackNames(4, 3)...)
	mixed := dots(t, "a/1_1.png", "a/2_1.png", "b/1_1.png", "b/x.png")
	given := dots(t, "train/a/p1_1.png", "train/a/p2_1.png", "train/b/p1_1.png", "test/a/p1_2.png", "test/b/p3_2.png")
	table := groupTable(t, "file,label,patient", func(i int) string {
		return fmt.Sprintf("%d.png,%d,%s", i, i%2, strings.Repeat("x", min(i/4, 3)))
	})
	single := dots(t, "a/p1_1.png", "a/p1_2.png", "b/p2_1.png", "b/p2_2.png")
	for _, test := range []struct{ root, group, want string }{
		{tracks, `(`, "must be parent, column=NAME, or a regular expression with a capture group"},
		{tracks, `\d+_`, `such as ^(.*)_, got "\\d+_"`},
		{tracks, "column=", `must be parent, column=NAME, or a regular expression with a capture group, such as ^(.*)_, got "column="`},
		{tracks, `(\.)png`, `dots: must give at least 2 groups, got only "." for all 24 images`},
		{tracks, "column=patient", "dots: must have a label table with the column patient next to the images, got none"},
		{mixed, `(\d+)_`, `dots: (\d+)_ must give a group for each file, got none for 1 of 4, such as b/x.png`},
		{mixed, `(\d*)(_|x)`, `must give a group for each file, got none for 1 of 4, such as b/x.png`},
		{given, `(p\d)_`, `a group must be in one of the data's own splits, got 1 in several, such as "p1" in train and test`},
		{table, "column=patient", "record 2: patient must not be empty, since it is the group of the image"},
		{table, "column=person", "record 2: must have the column person with the groups of images, got the columns file, label, patient"},
		{single, `(p\d)_`, "a class must have at least 2 groups to draw one from"},
		{"mnist", `(\d)`, "mnist: images must be files to have groups by their names, got arrays"},
		{"mnist", "column=person", "mnist: must have a label table with the column person"},
	} {
		options := isolated(t)
		options.Group = test.group
		_, err := Open(test.root, options)
		if err == nil || !strings.Contains(err.Error(), test.want) || !errors.As(err, new(*OptionError)) {
			t.Errorf("%s: error %v, want an OptionError with %q", test.group, err, test.want)
		}
	}
	options := isolated(t)
	options.Group = "parent"
	if _, err := Load("mnist", Test, options); err == nil || !strings.Contains(err.Error(), "images must be files") {
		t.Errorf("Load ignores groups of mnist: %v", err)
	}
}

// Test images that the data have may be named in another way, as with the German traffic signs.
func TestGroupsOfGivenSplits(t *testing.T) {
	var names []string
	for _, name := range trackNames(6, 2) {
		names = append(names, "train/"+name)
	}
	root := dots(t, append(names, "test/a/1.png", "test/b/2.png")...)
	options := isolated(t)
	options.Group, options.Validation = `^(.*)_`, 0.2
	splits, err := Open(root, options)
	if err != nil {
		t.Fatal(err)
	}
	if splits.Test.Groups != nil || splits.Test.Len() != 2 {
		t.Errorf("%d test images in the groups %q", splits.Test.Len(), splits.Test.Groups)
	}
	want := []string{"dots: test files such as test/a/1.png have no group by ^(.*)_: whether their groups are among those of other splits is not checked"}
	if !slices.Equal(splits.Train.Remarks, want) {
		t.Errorf("remarks %q, want %q", splits.Train.Remarks, want)
	}
	splits.Test = nil
	wantApart(t, splits, 24)
}

// Groups of several classes and sizes are drawn so that the classes keep their fractions.
func TestStratifiedByGroup(t *testing.T) {
	const patients, classes = 120, 5
	d := &Dataset{Name: "skin", Channels: 1, Height: 1, Width: 1, Classes: classes, ClassNames: numberNames(classes), Mean: []float64{0}, Std: []float64{1}}
	for patient := range patients {
		for i := range 3 + patient*7%11 {
			d.Labels = append(d.Labels, int32(min((patient+i*i)%9, classes-1)))
			d.Groups = append(d.Groups, fmt.Sprint("patient ", patient))
			d.Images = append(d.Images, 0)
		}
	}
	for seed := range uint64(20) {
		rest, part, err := d.Stratified(0.2, seed)
		if err != nil {
			t.Fatal(err)
		}
		wantApart(t, &Splits{Train: rest, Test: part}, d.Len())
		all := d.Counts()
		for class, count := range part.Counts() {
			if share := float64(count) / float64(all[class]); share < 0.17 || share > 0.23 {
				t.Errorf("seed %d: %.3f of class %d is drawn, want about 0.2", seed, share, class)
			}
		}
	}
	_, first, err := d.Stratified(0.2, 1)
	if err != nil {
		t.Fatal(err)
	}
	_, second, err := d.Stratified(0.2, 2)
	if err != nil || slices.Equal(groupsIn(first), groupsIn(second)) {
		t.Errorf("two seeds draw the same groups: %v", err)
	}
	slice, err := d.Slice(3, 10)
	if err != nil || !slices.Equal(slice.Groups, d.Groups[3:10]) {
		t.Errorf("a slice has the groups %q, %v", slice.Groups, err)
	}
	slice.Groups = slice.Groups[1:]
	if err := slice.Validate(); err == nil || !strings.Contains(err.Error(), "must have a group for each of 7 images, got 6") {
		t.Errorf("error %v", err)
	}
}

// A class of few groups has one in each part, and a class of one group stays whole.
func TestStratifiedByGroupRare(t *testing.T) {
	d := &Dataset{Name: "rare", Channels: 1, Height: 1, Width: 1, Classes: 3, ClassNames: numberNames(3), Mean: []float64{0}, Std: []float64{1}}
	for group, classes := range [][]int32{{0, 0, 0, 0}, {0}, {1, 1, 1}, {1, 1, 1}, {2, 2}} {
		for _, class := range classes {
			d.Labels, d.Groups, d.Images = append(d.Labels, class), append(d.Groups, fmt.Sprint(group)), append(d.Images, 0)
		}
	}
	for seed := range uint64(10) {
		_, part, err := d.Stratified(0.1, seed)
		if err != nil || !slices.Equal(part.Counts(), []int{1, 3, 0}) {
			t.Errorf("seed %d: drawn %v, %v, want the group of 1 image of class 0, one of class 1, and none of class 2", seed, part.Counts(), err)
		}
	}
}
