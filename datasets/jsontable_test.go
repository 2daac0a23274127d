package datasets

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The forms of label tables in JSON.
func TestJSONTables(t *testing.T) {
	want := []string{"train a 0.png", "train b 1.png", "train a in/2.png"}
	for _, test := range []struct {
		name, file, content string
		remarks             []string
	}{
		{"lines", "m.jsonl",
			"{\"file_name\":\"0.png\",\"label\":\"a\"}\n{\"label\":\"b\",\"file_name\":\"1.png\"}\n\n{\"file_name\":\"2\",\"label\":\"a\"}",
			[]string{"/m.jsonl: 1 of 3 files are found without regard to their extension, such as in/2.png for 2"}},
		{"a list", "labels.json", "\ufeff" + `[{"image":"0.png","label":["a"],"box":[1,2]},{"image":"1.png","label":"b"},{"image":"in/2.png","label":"a"}]`,
			[]string{"/labels.json: columns that are not read: box"}},
		{"other names in a list", "labels.json", `[{"x":"0.png","y":"a"},{"x":"1.png","y":"b"},{"x":"2.png","y":"a"}]`, nil},
		{"classes by file", "labels.json", `{"0.png":"a", "1.png":"b", "in/2.png":"a"}`, nil},
		{"objects by file", "labels.json", `{"0.png":{"label":"a","width":8}, "1.png":{"width":8,"label":"b"}, "in/2.png":{"label":"a"}}`,
			[]string{"/labels.json: columns that are not read: width"}},
		{"COCO", "train.json", `{"info":{},"images":[{"id":1,"file_name":"0.png"},{"id":2,"file_name":"1.png"},{"id":"x","file_name":"in/2.png"}],` +
			`"annotations":[{"image_id":"x","category_id":7},{"image_id":1,"category_id":7},{"image_id":2,"category_id":8},{"image_id":1,"category_id":7}],` +
			`"categories":[{"id":7,"name":"a","supercategory":"c"},{"id":8,"name":"b"}]}`, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := dots(t, "0.png", "1.png", "in/2.png")
			write(t, []byte(test.content), root, test.file)
			images, remarks := scanned(t, root)
			if !slices.Equal(images, want) || !slices.Equal(remarks, test.remarks) {
				t.Errorf("got %q, remarks %q, want %q, remarks %q", images, remarks, want, test.remarks)
			}
			found, err := Options{Context: t.Context()}.scanTable(filepath.Join(root, test.file))
			if err != nil || len(found.splits[Train].images) != 3 {
				t.Errorf("by its path: %v, %v", found.splits[Train], err)
			}
			listed, failed, err := listFiles([]string{filepath.Join(root, test.file)}, Options{Context: t.Context()})
			if err != nil || len(failed) > 0 || len(listed) != 3 {
				t.Errorf("listed for a prediction: %v, failed %v, error %v", listed, failed, err)
			}
		})
	}
}

// A column of groups and one of splits are read from JSON, too.
func TestJSONTableOfSplits(t *testing.T) {
	root := dots(t, "0.png", "1.png")
	write(t, []byte(`[{"file":"0.png","class":3,"split":"train"},{"file":"1.png","class":3.0,"split":"test"}]`), root, "labels.json")
	if images, remarks := scanned(t, root); !slices.Equal(images, []string{"train 3 0.png", "test 3 1.png"}) || remarks != nil {
		t.Errorf("got %q, remarks %q", images, remarks)
	}
}

// JSON files of other content next to class directories are left out, with a remark.
func TestOtherJSON(t *testing.T) {
	root := dots(t, "a/0.png", "b/1.png")
	for name, content := range map[string]string{
		"config.json": `{"epochs": 3, "layers": [1, 2]}`, "comment.json": "{ // JSON with a comment\n}", "number.json": "3", "empty.json": "", "list.json": "[{}]",
		"lines.jsonl": "{\"loss\":1}\n{\"loss\":", "class_to_idx.json": `{"a": 0, "b": 1}`,
	} {
		write(t, []byte(content), root, name)
	}
	images, remarks := scanned(t, root)
	want := []string{
		"/lines.jsonl: not read: must have a column of files, such as file, and one of classes, such as label, got the columns loss",
		": left out, since they do not have the extension of an image: 6 .json",
	}
	if !slices.Equal(images, []string{"train a a/0.png", "train b b/1.png"}) || !slices.Equal(remarks, want) {
		t.Errorf("got %q, remarks %q, want remarks %q", images, remarks, want)
	}
}

func TestJSONTableErrors(t *testing.T) {
	for _, test := range []struct{ content, want string }{
		{`[{"file":"0.png","class":"a"},{"file":"1.png","class":`, "labels.json: record 1: unexpected EOF"},
		{"{\"file\":\"0.png\",\"class\":\"a\"}\n{\"file\":\"1.png\",", "labels.json: record 2: unexpected EOF"},
		{"{\"file\":\"0.png\",\"class\":\"a\"}\n[1]", "labels.json: record 2: must be an object, got [1]"},
		{`[{"file":"0.png","class":["a","b"]},{"file":"1.png","class":"a"}]`, `labels.json: record 1: 0.png must have one class, text or a number, got ["a","b"]`},
		{`[{"file":"0.png","class":{}}]`, `labels.json: record 1: 0.png must have one class, text or a number, got {}`},
		{`{"epochs":1,"rate":0.1}`, "labels.json: must have a column of files and one of classes, got an object with the members epochs, rate; state"},
		{`[{"name":"0.png"}]`, "labels.json: must have a column of files and one of classes, got the columns name; state"},
		{`{"images":[{"id":1,"file_name":"0.png"}],"annotations":[{"image_id":1,"category_id":2}],"categories":[{"id":3,"name":"a"}]}`,
			"labels.json: record 1: the annotation of image 1 has the category 2, which is not in the list of categories"},
		{`{"images":[{"id":1,"file_name":"0.png"}],"annotations":[{"image_id":1,"category_id":2},{"image_id":1,"category_id":3}],` +
			`"categories":[{"id":3,"name":"a"},{"id":2,"name":"b"}]}`,
			"labels.json: an image must have one class, got several for 1 of them; 0.png has the class b in record 1, and a in record 2"},
		{`{"images":3,"annotations":[],"categories":[]}`, "labels.json: record 1: json: cannot unmarshal number"},
		{"[" + members(100) + "]", "labels.json: the records must have the same members, got 102 in all"},
	} {
		root := dots(t, "0.png", "1.png")
		write(t, []byte(test.content), root, "labels.json")
		_, err := Options{Context: t.Context()}.scanTable(filepath.Join(root, "labels.json"))
		wantError(t, err, test.want)
	}
}

// members returns n objects, each with a member of its own.
func members(n int) string {
	var objects []string
	for i := range n {
		objects = append(objects, `{"file":"0.png","class":"a","`+strings.Repeat("x", i+1)+`":0}`)
	}
	return strings.Join(objects, ",")
}

// Any JSON is read or refused without a panic.
func FuzzJSONTable(f *testing.F) {
	fuzzTable(f, "labels.json",
		`[{"file":"0.png","class":"a"},{"file":"1.png","class":["b"]}]`, `{"0.png":"a","1.png":2}`, `{"0.png":{"x":1}}`, "{\"file\":\"0.png\",\"class\":\"a\"}\n{}",
		`{"images":[{"id":1,"file_name":"0.png"}],"annotations":[{"image_id":1,"category_id":2}],"categories":[{"id":2,"name":"a"}]}`,
		`[{}]`, `[[]]`, `null`, `[1`, "1 2",
	)
}
