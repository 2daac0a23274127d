package command

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"
	"github.com/spf13/pflag"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/config"
	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/internal/npz"
)

// answerFormats are the formats of predict's answers, and the extensions of files that have them.
var answerFormats = []struct{ name, extension string }{
	{"table", ".txt"}, {"json", ".json"}, {"jsonl", ".jsonl"}, {"csv", ".csv"}, {"npz", ".npz"}, {"submission", ""},
}

// outputFlags are the flags of predict about how its answers are written.
type outputFlags struct {
	json, csv    bool
	format, path string
	template     string // of a submission
	classNumbers bool
	unreadClass  string // in a submission; "" makes images that cannot be read an error
}

func (o *outputFlags) bind(f *pflag.FlagSet) {
	f.StringVar(&o.format, "format", "", "format of the answers: table, json, jsonl, csv, npz or submission (default: by the name of --out, or table)")
	f.StringVar(&o.path, "out", "", "file for the answers (default: the standard output)")
	f.BoolVar(&o.json, "json", false, "short for --format json, with the probabilities of all classes")
	f.BoolVar(&o.csv, "csv", false, "short for --format csv, with the probabilities of all classes")
	f.StringVar(&o.template, "template", "", "Kaggle's sample_submission.csv: a submission gets its columns and its order of images")
	f.BoolVar(&o.classNumbers, "class-numbers", false, "write numbers of classes from 0 into a submission, instead of their names")
	f.StringVar(&o.unreadClass, "unread-class", "",
		"class that a submission has for images that cannot be read, instead of an error;\ncolumns of probabilities are then equal")
}

// resolve determines the format, or returns an error for flags that contradict each other.
func (o *outputFlags) resolve() error {
	short := map[bool]string{o.json: "json", o.csv: "csv"}[true]
	switch {
	case o.json && o.csv:
		return usage("pollen: --json and --csv cannot be combined")
	case short != "" && o.format != "" && o.format != short:
		return usage("pollen: --format %s and --%s cannot be combined", o.format, short)
	case short != "":
		o.format = short
	}
	var names []string
	for _, f := range answerFormats {
		names = append(names, f.name)
		if o.format == "" && f.extension != "" && strings.EqualFold(filepath.Ext(o.path), f.extension) {
			o.format = f.name
		}
	}
	switch {
	case o.format == "" && o.template != "":
		o.format = "submission"
	case o.format == "" && o.path != "":
		return usage("pollen: --out: the name must end in .txt, .json, .jsonl, .csv or .npz, or --format must be given, got %q", o.path)
	case o.format == "":
		o.format = "table"
	case !slices.Contains(names, o.format):
		return usage("pollen: --format must be %s or %s, got %q", strings.Join(names[:len(names)-1], ", "), names[len(names)-1], o.format)
	}
	switch {
	case o.format == "csv" && o.template != "" && !o.csv:
		o.format = "submission"
	case o.format != "submission" && (o.template != "" || o.classNumbers):
		return usage("pollen: --template and --class-numbers are for --format submission, got %s", o.format)
	case o.format != "submission" && o.unreadClass != "":
		return usage("pollen: --unread-class is for --format submission, got %s", o.format)
	case o.format == "npz" && o.path == "":
		return usage("pollen: --format npz needs --out")
	}
	return config.CheckParent("out", o.path)
}

// checkPaths returns an error for a path that is meant as the value of --json or --csv.
func (o *outputFlags) checkPaths(paths []string) error {
	for _, path := range paths {
		short := strings.TrimPrefix(filepath.Ext(path), ".")
		if (short == "json" && o.json || short == "csv" && o.csv) && !exists(path) {
			return usage("pollen: %s does not exist, and --%s takes no file: write the answers to one by --out %[1]s", path, short)
		}
	}
	return nil
}

// write writes the answers to --out or the standard output. idName is the name of the column with
// the images' identifiers, if they have any.
func (o *outputFlags) write(answers []bayes.Answer, classes []string, idName string, c *console) error {
	if o.format == "npz" {
		return writeAnswerArrays(o.path, answers, classes)
	}
	if o.path == "" {
		return o.print(c.out, answers, classes, idName)
	}
	var text bytes.Buffer
	if err := o.print(&text, answers, classes, idName); err != nil {
		return err
	}
	return errors.Wrap(file.Write(o.path, text.Bytes()), "pollen: predict")
}

func (o *outputFlags) print(to io.Writer, answers []bayes.Answer, classes []string, idName string) error {
	switch o.format {
	case "json":
		encoder := json.NewEncoder(to)
		encoder.SetIndent("", "  ")
		return errors.Wrap(encoder.Encode(answers), "pollen: json")
	case "jsonl":
		encoder := json.NewEncoder(to)
		for _, a := range answers {
			if err := encoder.Encode(a); err != nil {
				return errors.Wrap(err, "pollen: json")
			}
		}
		return nil
	case "csv":
		return bayes.WriteCSV(to, answers, classes)
	case "submission":
		return o.printSubmission(to, answers, classes, idName)
	}
	table, err := answerTable(answers)
	if err != nil {
		return err
	}
	return table.WriteText(to)
}

// writeAnswerArrays writes the answers as arrays, without those that have an error: file, id if
// there are identifiers, class_names [K], probabilities [N K], index, confidence, entropy and
// mutual_information, if the run is calibrated, prediction_set [N K], in_distribution and p_value,
// and refer if a risk was asked for.
func writeAnswerArrays(path string, answers []bayes.Answer, classes []string) error {
	answers = slices.DeleteFunc(slices.Clone(answers), func(a bayes.Answer) bool { return a.Error != "" })
	n, k := len(answers), len(classes)
	var files, ids []string
	var index []int64
	var probabilities, confidence, entropy, information, pValues []float64
	var sets, inside, refer []bool
	for _, a := range answers {
		files, ids, index = append(files, a.File), append(ids, a.ID), append(index, int64(a.Index))
		probabilities, confidence = append(probabilities, a.Probabilities...), append(confidence, a.Confidence)
		entropy, information = append(entropy, a.Entropy), append(information, a.MutualInformation)
		if a.PredictionSet != nil {
			sets = append(sets, a.SetMembers(classes)...)
		}
		if a.InDistribution != nil {
			inside, pValues = append(inside, *a.InDistribution), append(pValues, *a.PValue)
		}
		if a.Refer != nil {
			refer = append(refer, *a.Refer)
		}
	}
	arrays := []npz.Array{
		{Name: "file", Shape: []int{n}, Values: files}, {Name: "class_names", Shape: []int{k}, Values: classes},
		{Name: "probabilities", Shape: []int{n, k}, Values: probabilities}, {Name: "index", Shape: []int{n}, Values: index},
		{Name: "confidence", Shape: []int{n}, Values: confidence}, {Name: "entropy", Shape: []int{n}, Values: entropy},
		{Name: "mutual_information", Shape: []int{n}, Values: information},
	}
	if slices.ContainsFunc(ids, func(id string) bool { return id != "" }) {
		arrays = append(arrays, npz.Array{Name: "id", Shape: []int{n}, Values: ids})
	}
	if sets != nil {
		arrays = append(arrays, npz.Array{Name: "prediction_set", Shape: []int{n, k}, Values: sets})
	}
	if inside != nil {
		arrays = append(arrays, npz.Array{Name: "in_distribution", Shape: []int{n}, Values: inside}, npz.Array{Name: "p_value", Shape: []int{n}, Values: pValues})
	}
	if refer != nil {
		arrays = append(arrays, npz.Array{Name: "refer", Shape: []int{n}, Values: refer})
	}
	return npz.Write(path, arrays...)
}

// checkImages returns an error, before anything is predicted, if a submission of the images cannot
// be written: if it cannot have the rows and columns of its template, or if some images could not
// be read, and there is no class for them.
func (o *outputFlags) checkImages(images *datasets.Dataset, classes []string, c *console) error {
	if err := o.checkUnread(images, classes, c); err != nil || o.template == "" {
		return err
	}
	var answers []bayes.Answer
	for i, file := range images.Files {
		answers = append(answers, o.unreadRow(file, classes))
		if images.IDs != nil {
			answers[i].ID = images.IDs[i]
		}
	}
	for _, f := range images.Failed {
		answers = append(answers, o.unreadRow(f.File, classes))
	}
	return o.printSubmission(io.Discard, answers, classes, images.IDName)
}

// checkUnread returns an error if a submission cannot have a row for each image.
func (o *outputFlags) checkUnread(images *datasets.Dataset, classes []string, c *console) error {
	if o.unreadClass != "" && !slices.Contains(classes, o.unreadClass) {
		return usage("pollen: --unread-class must be a class of the run, such as %q, got %q", classes[0], o.unreadClass)
	}
	failed := images.Failed
	if o.format != "submission" || len(failed) == 0 {
		return nil
	}
	for _, f := range failed {
		if strings.HasSuffix(f.File, "]") && o.unreadClass != "" {
			return errors.Errorf("pollen: submission: every row must have a readable image, which its identifier or number is for, got %v", f)
		}
	}
	if o.unreadClass != "" {
		return nil
	}
	for _, f := range failed[1:] {
		c.remark("%v", f)
	}
	return errors.Errorf("pollen: submission: every image must have an answer, so nothing is written: %d of %s could not be read: %v; "+
		"give such images a class by --unread-class, or write the other answers by --format csv",
		len(failed), counted(len(failed)+images.Len(), "image"), failed[0])
}

// unread returns what is written for an image that could not be read: the error, or in a submission
// the class of --unread-class with equal probabilities.
func (o *outputFlags) unread(f datasets.ImageError, classes []string) bayes.Answer {
	if o.format == "submission" {
		return o.unreadRow(f.File, classes)
	}
	return bayes.Answer{File: f.File, Error: f.Err.Error()}
}

func (o *outputFlags) unreadRow(file string, classes []string) bayes.Answer {
	a := bayes.Answer{File: file, Class: o.unreadClass, Index: slices.Index(classes, o.unreadClass)}
	for range classes {
		a.Probabilities = append(a.Probabilities, 1/float64(len(classes)))
	}
	return a
}

// printSubmission writes a Kaggle submission: an identifier and a class, or a probability for each
// class, of each image.
//
// The identifiers are from the input's table. Without them, images of arrays are numbered from
// 1, as in Digit Recognizer, and image files have their names. With a template, the columns and the
// images are the template's: its identifiers are looked up in the table or among the names of the
// files, with or without an extension; the images of arrays are in its order.
func (o *outputFlags) printSubmission(to io.Writer, answers []bayes.Answer, classes []string, idName string) error {
	rows := csv.NewWriter(to)
	header, ids, byID := []string{idName, "Label"}, []string(nil), func(i int, _ string) []int { return []int{i} }
	isArray := func(a bayes.Answer) bool { return strings.HasSuffix(a.File, "]") }
	hasIDs := slices.ContainsFunc(answers, func(a bayes.Answer) bool { return a.ID != "" })
	for i, a := range answers {
		switch {
		case hasIDs && a.ID == "":
			return errors.Errorf("pollen: submission: every image must have an identifier, as those of the table have, got %s", a.File)
		case hasIDs:
			ids = append(ids, a.ID)
		case isArray(a):
			ids = append(ids, strconv.Itoa(i+1))
		default:
			ids = append(ids, filepath.Base(a.File))
		}
	}
	if header[0] == "" {
		header[0] = map[bool]string{true: "ImageId", false: "id"}[slices.ContainsFunc(answers, isArray)]
	}
	if o.template != "" {
		var err error
		if header, ids, err = readTemplate(o.template); err != nil {
			return err
		}
		if !hasIDs && slices.ContainsFunc(answers, isArray) {
			if len(ids) != len(answers) {
				return errors.Errorf("pollen: submission: %s must have a row for each of %d images, got %d", o.template, len(answers), len(ids))
			}
		} else {
			byID = lookUp(answers, hasIDs)
		}
	}
	columns, err := o.submissionColumns(header, classes)
	if err != nil {
		return err
	}
	if err := rows.Write(header); err != nil {
		return errors.Wrap(err, "pollen: submission")
	}
	for i, id := range ids {
		found := byID(i, id)
		if len(found) == 0 {
			return errors.Errorf("pollen: submission: %s: the image %q must be among the %d images, got none of that identifier or file name",
				o.template, id, len(answers))
		}
		file := answers[found[0]].File
		if other := slices.IndexFunc(found, func(at int) bool { return answers[at].File != file }); other >= 0 {
			return errors.Errorf("pollen: submission: %s: the image %q must be a single image, got %s and %s",
				o.template, id, file, answers[found[other]].File)
		}
		if err := rows.Write(append([]string{id}, columns(&answers[found[0]])...)); err != nil {
			return errors.Wrap(err, "pollen: submission")
		}
	}
	rows.Flush()
	return errors.Wrap(rows.Error(), "pollen: submission")
}

// submissionColumns returns a function that returns the columns of an answer after the identifier:
// the class, or the probabilities of the classes that the header names.
func (o *outputFlags) submissionColumns(header, classes []string) (func(a *bayes.Answer) []string, error) {
	if len(header) == 2 {
		return func(a *bayes.Answer) []string {
			if o.classNumbers {
				return []string{strconv.Itoa(a.Index)}
			}
			return []string{a.Class}
		}, nil
	}
	var order []int
	for _, name := range header[1:] {
		class := slices.Index(classes, name)
		if class < 0 || slices.Contains(order, class) {
			return nil, errors.Errorf("pollen: submission: %s: column %q must be one of the run's classes, each once", o.template, name)
		}
		order = append(order, class)
	}
	if len(order) != len(classes) {
		return nil, errors.Errorf("pollen: submission: %s must have a column for each of %d classes, got %d", o.template, len(classes), len(order))
	}
	return func(a *bayes.Answer) (row []string) {
		for _, class := range order {
			row = append(row, strconv.FormatFloat(a.Probabilities[class], 'g', 8, 64))
		}
		return row
	}, nil
}

// lookUp returns a function that finds the answers of an identifier, or of the name of a file, or
// else of a name without its extension.
func lookUp(answers []bayes.Answer, hasIDs bool) func(_ int, id string) []int {
	whole, stems := map[string][]int{}, map[string][]int{}
	for i, a := range answers {
		if hasIDs {
			whole[a.ID] = append(whole[a.ID], i)
			continue
		}
		name := filepath.Base(a.File)
		stem := strings.TrimSuffix(name, filepath.Ext(name))
		whole[name], stems[stem] = append(whole[name], i), append(stems[stem], i)
	}
	return func(_ int, id string) []int {
		if found := whole[id]; found != nil {
			return found
		}
		return stems[id]
	}
}

// readTemplate returns the header and the identifiers of a submission.
func readTemplate(path string) (header, ids []string, err error) {
	opened, err := os.Open(path)
	if err != nil {
		return nil, nil, errors.Wrap(err, "pollen: submission")
	}
	defer opened.Close()
	rows, err := csv.NewReader(opened).ReadAll()
	if err != nil {
		return nil, nil, errors.Wrapf(err, "pollen: submission: %s", path)
	}
	if len(rows) < 2 || len(rows[0]) < 2 {
		return nil, nil, errors.Errorf("pollen: submission: %s must have a header of two columns or more, and a row for each image, got %d lines", path, len(rows))
	}
	rows[0][0] = strings.TrimPrefix(rows[0][0], "\ufeff")
	for _, row := range rows[1:] {
		ids = append(ids, row[0])
	}
	return rows[0], ids, nil
}
