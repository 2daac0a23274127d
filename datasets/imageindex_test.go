package datasets

import "testing"

// Names of tables find images by path or last part, whatever their slashes, form and extension.
func TestImageIndex(t *testing.T) {
	var images []imageFile
	for _, name := range []string{"in/a/1.png", "in/b/1.png", "in/b/2.JPG", "in/3.png", "in/3.png.gif", "in/b/e\u0301.png", "in/b/4.v2.png"} {
		images = append(images, imageFile{name: name})
	}
	x := newImageIndex("in", images)
	for _, test := range []struct {
		name       string
		byLastPart bool
		want       string
		count      int
		asIs       bool
	}{
		{"a/1.png", false, "in/a/1.png", 1, true},
		{` .\a\1.png `, false, "in/a/1.png", 1, true},
		{"./a//1", false, "in/a/1.png", 1, false},
		{"1.png", false, "in/b/1.png", 2, true},
		{"2.jpg", false, "in/b/2.JPG", 1, false},
		{"2", false, "in/b/2.JPG", 1, false},
		{"3.png", false, "in/3.png", 1, true},
		{"3", false, "in/3.png", 1, false},
		{"\u00e9.png", false, "in/b/e\u0301.png", 1, true},
		{"4.v2", false, "in/b/4.v2.png", 1, false},
		{"4", false, "", 0, false},
		{"c/2.JPG", false, "", 0, false}, // another image may have been meant
		{"/data/c/2.JPG", true, "in/b/2.JPG", 1, true},
		{`C:\data\2.png`, true, "in/b/2.JPG", 1, false},
		{"a/1.png", true, "in/b/1.png", 2, true},
		{"", false, "", 0, false},
	} {
		got := x.find(test.name, test.byLastPart)
		if got.image.name != test.want || got.count != test.count || got.asIs != test.asIs {
			t.Errorf("find(%q, %t) = %q, count %d, as is %t, want %q, %d, %t",
				test.name, test.byLastPart, got.image.name, got.count, got.asIs, test.want, test.count, test.asIs)
		}
	}
}

func TestImageIndexFlat(t *testing.T) {
	for _, test := range []struct {
		names []string
		want  bool
	}{
		{[]string{"1.png", "2.png"}, true},
		{[]string{"1.png", "a/1.png", "a/b/1.png"}, true},
		{[]string{"a/1.png", "b/1.png"}, false},
	} {
		var images []imageFile
		for _, name := range test.names {
			images = append(images, imageFile{name: name})
		}
		if got := newImageIndex("", images).flat(); got != test.want {
			t.Errorf("flat of %q is %t, want %t", test.names, got, test.want)
		}
	}
}
