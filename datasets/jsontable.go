package datasets

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pkg/errors"
)

// isJSON reports whether a file may be a label table in JSON.
func isJSON(path string) bool {
	return slices.Contains([]string{".json", ".jsonl"}, strings.ToLower(filepath.Ext(path)))
}

// jsonTable collects the records of a label table in JSON.
type jsonTable struct {
	columns  map[string]int
	headings []string
	records  [][]jsonField
}

// jsonField is a member of a record.
type jsonField struct {
	column int
	value  string
}

// readJSONTable reads the headings and rows of a label table in one of four forms: an object in
// each line, a list of objects, an object with COCO's lists of images, annotations and categories,
// or an object whose members are named after the files and have the class, or an object with the
// class, as their value. In the last form, which many other files have, named is false, and the
// columns are called file and class. After an error, the headings are those of the records before.
func readJSONTable(content []byte) (headings []string, rows [][]string, named bool, err error) {
	t := &jsonTable{columns: map[string]int{}}
	d := json.NewDecoder(bytes.NewReader(content))
	var first json.RawMessage
	named = true
	switch err = d.Decode(&first); {
	case err != nil:
	case d.More():
		for line := first; err == nil; {
			if err = t.add(nil, line); err == nil {
				err = d.Decode(&line)
			}
		}
		if err == io.EOF {
			err = nil
		}
	case first[0] == '[':
		err = eachOf(first, func(_ string, record json.RawMessage) error { return t.add(nil, record) })
	case first[0] == '{':
		named, err = t.addObject(first)
	default:
		err = errors.Errorf("must be an object, got %.40s", first)
	}
	if err != nil {
		return t.headings, nil, named, errors.WithMessagef(err, "record %d", len(t.records)+1)
	}
	if len(t.records)*len(t.headings) > len(content) {
		return t.headings, nil, named, errors.Errorf("the records must have the same members, got %d in all", len(t.headings))
	}
	for _, record := range t.records {
		row := make([]string, len(t.headings))
		for _, field := range record {
			row[field.column] = field.value
		}
		rows = append(rows, row)
	}
	return t.headings, rows, named, nil
}

// eachOf calls use for each element of a list, or each member of an object with its name.
func eachOf(value json.RawMessage, use func(name string, value json.RawMessage) error) error {
	d := json.NewDecoder(bytes.NewReader(value))
	start, err := d.Token()
	for err == nil && d.More() {
		name := ""
		if start == json.Delim('{') {
			var token json.Token
			if token, err = d.Token(); err != nil {
				return err
			}
			name = token.(string)
		}
		var element json.RawMessage
		if err = d.Decode(&element); err == nil {
			err = use(name, element)
		}
	}
	return err
}

// addObject adds the records of a file that is one object.
func (t *jsonTable) addObject(object json.RawMessage) (named bool, err error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(object, &members); err != nil {
		return false, err
	}
	if members["images"] != nil && members["annotations"] != nil && members["categories"] != nil {
		return true, t.addCOCO(members["images"], members["annotations"], members["categories"])
	}
	for name := range members {
		if slices.Contains(fileHeadings, strings.ToLower(name)) {
			return true, t.add(nil, object) // the only line
		}
	}
	return false, eachOf(object, func(name string, value json.RawMessage) error {
		fields := []jsonField{{t.column(fileHeadings[1]), name}}
		if value[0] == '{' {
			return t.add(fields, value)
		}
		t.records = append(t.records, append(fields, jsonField{t.column(classHeadings[1]), jsonText(value)}))
		return nil
	})
}

// add adds a record with the given fields and those of an object.
func (t *jsonTable) add(fields []jsonField, object json.RawMessage) error {
	if object[0] != '{' {
		return errors.Errorf("must be an object, got %.40s", object)
	}
	err := eachOf(object, func(name string, value json.RawMessage) error {
		fields = append(fields, jsonField{t.column(name), jsonText(value)})
		return nil
	})
	t.records = append(t.records, fields)
	return err
}

// addCOCO adds a record for each image and class of COCO's lists. An image without annotations has
// no class.
func (t *jsonTable) addCOCO(imageList, annotationList, categoryList json.RawMessage) error {
	var images []struct {
		ID   json.RawMessage `json:"id"`
		Name string          `json:"file_name"`
	}
	var annotations []struct {
		Image    json.RawMessage `json:"image_id"`
		Category json.RawMessage `json:"category_id"`
	}
	var categories []struct {
		ID   json.RawMessage `json:"id"`
		Name string          `json:"name"`
	}
	err := cmp.Or(json.Unmarshal(imageList, &images), json.Unmarshal(annotationList, &annotations), json.Unmarshal(categoryList, &categories))
	if err != nil {
		return err
	}
	names := map[string]string{}
	for _, c := range categories {
		names[string(c.ID)] = c.Name
	}
	classes := map[string][]string{}
	for _, a := range annotations {
		class, known := names[string(a.Category)]
		if !known {
			return errors.Errorf("the annotation of image %s has the category %s, which is not in the list of categories", a.Image, a.Category)
		}
		if of := classes[string(a.Image)]; !slices.Contains(of, class) {
			classes[string(a.Image)] = append(of, class)
		}
	}
	file, class := t.column("file_name"), t.column("category")
	for _, image := range images {
		of := classes[string(image.ID)]
		if of == nil {
			of = []string{""}
		}
		for _, name := range of {
			t.records = append(t.records, []jsonField{{file, image.Name}, {class, name}})
		}
	}
	return nil
}

// column returns the column with a heading, which it adds if there is none.
func (t *jsonTable) column(heading string) int {
	at, known := t.columns[heading]
	if !known {
		at = len(t.headings)
		t.columns[heading] = at
		t.headings = append(t.headings, heading)
	}
	return at
}

// jsonText returns text without its quotes, "" for null, 3 for 3.0, the element of a list of one,
// and other values as they are written.
func jsonText(value json.RawMessage) string {
	var list []json.RawMessage
	if json.Unmarshal(value, &list) == nil && len(list) == 1 {
		value = list[0]
	}
	var text string
	if json.Unmarshal(value, &text) == nil { // null leaves it empty
		return text
	}
	return strings.TrimSuffix(string(value), ".0")
}
