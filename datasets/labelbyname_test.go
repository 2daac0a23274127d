package datasets

import (
	"slices"
	"testing"
)

// Classes in the names of files, as in Oxford's pets and Kaggle's cats and dogs.
func TestLabelByName(t *testing.T) {
	scan := func(root, label string) (tree, error) { return Options{Context: t.Context(), Label: label}.scan(root) }
	for _, test := range []struct {
		name, label string
		files, want []string
		remark      string
	}{
		{"one directory below", "file=([^/]+)_", []string{"images/great_dane_2.png", "images/pug_1.png", "images/pug_10.png"},
			[]string{"great_dane images/great_dane_2.png", "pug images/pug_1.png", "pug images/pug_10.png"}, ""},
		{"files of other names", `file=^(\w+)\.\d`, []string{"cat.0.png", "dog.1.png", "logo.png", "in/cat.2.png"},
			[]string{"cat cat.0.png", "dog dog.1.png"}, `dots: 2 of 4 images have no class by file=^(\w+)\.\d, and are left out, such as in/cat.2.png`},
		{"directories that are no classes", "file=([^/]+)/[^/]+$", []string{"s1/rose/1.png", "s2/rose/1.png", "s2/tulip/1.png"},
			[]string{"rose s1/rose/1.png", "rose s2/rose/1.png", "tulip s2/tulip/1.png"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			found, err := scan(dots(t, test.files...), test.label)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, image := range found.splits[Train].images {
				got = append(got, image.class+" "+image.name)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if remarks := append(found.remarks, ""); remarks[0] != test.remark || len(remarks) > 2 {
				t.Errorf("remarks %q, want %q", found.remarks, test.remark)
			}
		})
	}

	root := dots(t, "train/cat.0.png", "train/dog.1.png", "test/1.png")
	found, err := scan(root, `file=([^/]+)\.\d`)
	if err != nil || len(found.splits[Train].images) != 2 || found.splits[Test] != nil || !slices.Equal(found.flat[Test], []string{"test"}) {
		t.Errorf("splits, of which one has no classes: %+v, error %v", found, err)
	}
	_, err = scan(root, "file=(bird)")
	wantError(t, err, "dots/train: must have images with a class by file=(bird), got none in 2, such as train/cat.0.png")
	for _, label := range []string{"file=cat", "file=(", "file="} {
		wantError(t, Options{Label: label}.check(), "must be a column, or file= and a regular expression with a capture group, such as file=([^/]+)_, got")
	}

	options := isolated(t)
	options.Label = `file=([^/]+)\.\d`
	splits, err := Open(dots(t, "cat.0.png", "dog.1.png", "cat.2.png", "dog.3.png", "cat.4.png", "dog.5.png"), options)
	if err != nil || !slices.Equal(splits.Train.ClassNames, []string{"cat", "dog"}) || splits.Train.LabelColumn != options.Label {
		t.Errorf("got %+v, error %v", splits, err)
	}
}
