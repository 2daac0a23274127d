package bayes

import (
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"os"
	"slices"
	"strconv"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/internal/rundir"
)

// SplitImage is an image of a run's data: a line of splits.csv.gz.
type SplitImage struct {
	// File is the image's file, or its number in its split if images are not files.
	File string
	// Split is train, validation or test, or unused for the training images that Spec.Subset omits.
	Split string
	// Class is the image's label, and Group its group, see datasets.Options.
	Class, Group string
	// Prediction is the most probable class, and Confidence its averaged probability, which is not
	// scaled; "" and 0 if the image was not held out, or not predicted yet.
	Prediction string
	Confidence float64
	// Pixels identifies the image by its pixels, in the size of the run: the first 16 hexadecimal
	// digits of their SHA-256.
	Pixels string
}

// unusedSplit is SplitImage.Split of training images that are not trained on.
const unusedSplit = "unused"

var splitsHeader = []string{"file", "split", "class", "group", "prediction", "confidence", "pixels"}

// splitImages lists the images of a run with size training images, split by split in the order of
// the data, so that predictions can be assigned to images by position.
func splitImages(data *datasets.Splits, size int) (images []SplitImage) {
	for _, part := range []struct {
		split datasets.Split
		data  *datasets.Dataset
	}{{datasets.Train, data.Train}, {datasets.Validation, data.Validation}, {datasets.Test, data.Test}} {
		d := part.data
		if d == nil {
			continue
		}
		first := len(images)
		for i := range d.Len() {
			image := SplitImage{File: strconv.Itoa(i), Split: part.split.String(), Pixels: pixelsHash(d.Image(i))}
			if d.Files != nil {
				image.File = d.Files[i]
			}
			if d.Labels != nil {
				image.Class = d.ClassNames[d.Labels[i]]
			}
			if d.Groups != nil {
				image.Group = d.Groups[i]
			}
			images = append(images, image)
		}
		if part.split == datasets.Train && size < d.Len() {
			for i := range d.Len() {
				images[first+i].Split = unusedSplit
			}
			for _, i := range d.FirstIndices(size) {
				images[first+i].Split = part.split.String()
			}
		}
	}
	return images
}

// pixelsHash returns SplitImage.Pixels of an image. By chance, two of a million different images
// have the same with a probability of 3e-8.
func pixelsHash(image []byte) string {
	sum := sha256.Sum256(image)
	return hex.EncodeToString(sum[:8])
}

// predicted sets the predictions of the images of a split.
func predicted(images []SplitImage, split datasets.Split, p *evaluate.Predictions, classes []string) error {
	// The images of a split follow one another, in the order of the data.
	from := slices.IndexFunc(images, func(image SplitImage) bool { return image.Split == split.String() })
	count := 0
	for _, image := range images {
		if image.Split == split.String() {
			count++
		}
	}
	if count != p.Len() {
		return invalid("%s: must have predictions for the %d %s images of the run, got %d", rundir.SplitsFile, count, split, p.Len())
	}
	for i := range count {
		class, confidence := p.Guess(i)
		images[from+i].Prediction, images[from+i].Confidence = classes[class], confidence
	}
	return nil
}

// formatSplits returns the content of splits.csv.gz.
func formatSplits(images []SplitImage) ([]byte, error) {
	var b bytes.Buffer
	rows := csv.NewWriter(&b)
	err := rows.Write(splitsHeader)
	for _, image := range images {
		confidence := ""
		if image.Prediction != "" {
			confidence = strconv.FormatFloat(image.Confidence, 'g', 8, 64)
		}
		if err == nil {
			err = rows.Write([]string{image.File, image.Split, image.Class, image.Group, image.Prediction, confidence, image.Pixels})
		}
	}
	if rows.Flush(); err == nil {
		err = rows.Error()
	}
	return b.Bytes(), errors.Wrap(err, "pollen: "+rundir.SplitsFile)
}

// parseSplits reads the content of splits.csv.gz. The CSV reader returns an error if a record is
// longer or shorter than the header.
func parseSplits(content []byte) ([]SplitImage, error) {
	rows, err := csv.NewReader(bytes.NewReader(content)).ReadAll()
	if err != nil {
		return nil, errors.WithStack(err)
	}
	if len(rows) == 0 || !slices.Equal(rows[0], splitsHeader) {
		return nil, errors.Errorf("must begin with the header %v", splitsHeader)
	}
	images := make([]SplitImage, len(rows)-1)
	for i, row := range rows[1:] {
		images[i] = SplitImage{File: row[0], Split: row[1], Class: row[2], Group: row[3], Prediction: row[4], Pixels: row[6]}
		if row[5] == "" {
			continue
		}
		if images[i].Confidence, err = strconv.ParseFloat(row[5], 64); err != nil {
			return nil, errors.Wrapf(err, "record %d", i+2)
		}
	}
	return images, nil
}

// Splits returns the images of the run's data: those trained on and, with their predictions if they
// were made, those held out. The error's cause is os.ErrNotExist if there is no list, as for
// gathered runs, and the error is DamagedError if the list was changed.
func (r *Run) Splits() ([]SplitImage, error) {
	content, err := rundir.ReadSplits(r.dir)
	if err != nil {
		return nil, err
	}
	images, err := parseSplits(content)
	if err != nil {
		return nil, errors.Wrapf(err, "pollen: %s: %s", r.dir, rundir.SplitsFile)
	}
	return images, nil
}

// Seen returns how many of some images the run was trained on, and how many others it held out for
// validation. It compares pixels, so images must have the size of the run's. Images of one colour
// are not counted: equal ones may be different images. A gathered run is trained on the images of
// its first part, as are the others. The error's cause is os.ErrNotExist if the run has no list of
// its images.
func (r *Run) Seen(images *datasets.Dataset) (trained, validation int, err error) {
	trained, both, validation, err := r.seen(images)
	return trained + both, validation, err
}

// seen returns how many of some images are only among those that the run was trained on, among
// these and those held out for validation, and only among the latter.
func (r *Run) seen(images *datasets.Dataset) (trained, both, validation int, err error) {
	if _, err := r.images(images); err != nil {
		return 0, 0, 0, err
	}
	parts, err := r.Parts()
	if err != nil {
		return 0, 0, 0, err
	}
	if len(parts) > 0 {
		r = parts[0]
	}
	own, err := r.Splits()
	if err != nil {
		return 0, 0, 0, err
	}
	isTrained, isHeldOut := map[string]bool{}, map[string]bool{}
	for _, image := range own {
		switch image.Split {
		case datasets.Train.String():
			isTrained[image.Pixels] = true
		case datasets.Validation.String():
			isHeldOut[image.Pixels] = true
		}
	}
	for i := range images.Len() {
		if isPlain(images.Image(i), images.Channels) {
			continue
		}
		switch pixels := pixelsHash(images.Image(i)); {
		case isTrained[pixels] && isHeldOut[pixels]:
			both++
		case isTrained[pixels]:
			trained++
		case isHeldOut[pixels]:
			validation++
		}
	}
	return trained, both, validation, nil
}

// isPlain reports whether all pixels of an image [C H W] have the same colour.
func isPlain(image []byte, channels int) bool {
	plane := len(image) / channels
	for at, value := range image {
		if value != image[at/plane*plane] {
			return false
		}
	}
	return true
}

// RecordTest adds predictions for the test images that Fit was given to the list of Splits. The
// list already has those for the validation images. RecordTest does nothing if the run does not
// have the list. The error is LockedError while another process writes to the run.
func (r *Run) RecordTest(p *evaluate.Predictions) error {
	images, err := r.Splits()
	if os.IsNotExist(errors.Cause(err)) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := predicted(images, datasets.Test, p, r.manifest.Data.ClassNames); err != nil {
		return err
	}
	content, err := formatSplits(images)
	if err != nil {
		return err
	}
	return rundir.AddSplits(r.dir, content, r.remark)
}

// beginSplits writes splits.csv.gz without predictions, unless a resumed run has it.
func (t *training) beginSplits(data *datasets.Splits) error {
	if _, err := rundir.ReadSplits(t.dir); err == nil {
		return nil
	}
	return t.writeSplits(splitImages(data, t.data.Len()))
}

// endSplits adds the predictions for the validation images to splits.csv.gz. It keeps those for the
// test images of a run that was finished before.
func (t *training) endSplits(data *datasets.Splits) error {
	images := splitImages(data, t.data.Len())
	if t.validated != nil {
		if err := predicted(images, datasets.Validation, t.validated, t.manifest.Data.ClassNames); err != nil {
			return err
		}
	}
	// A file that cannot be read is written again: all of it but the test images' predictions,
	// which an evaluation adds, follows from the data.
	if content, err := rundir.ReadSplits(t.dir); err == nil {
		if before, err := parseSplits(content); err == nil && len(before) == len(images) {
			for i, image := range before {
				if image.Split == datasets.Test.String() && image.Pixels == images[i].Pixels {
					images[i].Prediction, images[i].Confidence = image.Prediction, image.Confidence
				}
			}
		}
	}
	return t.writeSplits(images)
}

// writeSplits writes splits.csv.gz.
func (t *training) writeSplits(images []SplitImage) error {
	content, err := formatSplits(images)
	if err != nil {
		return err
	}
	return t.writer.WriteSplits(content)
}
