package command

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/internal/testenv"
)

// reportedData has the data sets of ../shared/cases/reports, which reproduce public bug reports, by
// the generator that makes them. fit must print all patterns of a data set; if the first is "exit
// 1" or "exit 2", fit must refuse the data with that exit code.
var reportedData = map[string]map[string][]string{
	"labels.py": {
		"one-based.npz":          {`no training image has the label 0: the classes are the labels 1 to 3`},
		"one-based.csv":          {`no training image has the label 0: the classes are the labels 1 to 3`},
		"idx-one-based":          {`no training image has the label 0: the classes are the labels 1 to 3`},
		"gap.npz":                {`no training image has the labels 1, 3 to 999: the classes are the labels 0, 2, 1000`},
		"gap.csv":                {`no training image has the labels 1, 3 to 999: the classes are the labels 0, 2, 1000`},
		"big.npz":                {`no training image has the labels 1, 3 to 65534`, `in 3 classes`},
		"toobig.npz":             {`exit 1`, `labels.npy: label 2 must be 0 or more and below 65536, got 65536`},
		"minus.npz":              {`exit 1`, `label 0 must be 0 or more and below 65536, got -1`},
		"minus.csv":              {`exit 1`, `minus.csv: line 2: column 1: label must be the name of a class or an integer from 0 to below 65536, got "-1"`},
		"minus8.npz":             {`the classes are the labels 0, 1, 255; 255 may be -1 as an unsigned byte`},
		"idx-ghost255":           {`the classes are the labels 0, 1, 255; 255 may be -1 as an unsigned byte`},
		"test-one-based.npz":     {`exit 1`, `the labels of test images must be among those of the training images, 0 to 2, got 3 for image 2`},
		"nan.csv":                {`exit 1`, `nan.csv: line 6: column 101: must be an integer from 0 to 255, got "NaN"`},
		"empty-field.csv":        {`exit 1`, `empty-field.csv: line 6: column 101: must be an integer from 0 to 255, got ""`},
		"float-pixels.csv":       {`in 3 classes`},
		"float-label.csv":        {`in 3 classes`},
		"index.csv":              {`column 1, "", is not read, since it numbers the images`, `in 3 classes`},
		"cr.csv":                 {`in 3 classes`},
		"semicolon-crlf-bom.csv": {`in 3 classes`},
		"quoted.csv":             {`in 3 classes`},
		"no-heading.csv":         {`has no header: its first column is read as the label, with values from 0 to 2`},
		"last-no-heading.csv":    {`has no header: its first column is read as the label, with values from 16 to 238`, `150 of 150 classes have fewer than 10`},
		"names.csv":              {`in 3 classes`, `(?m)^rose `},
		"unit-pixels.csv":        {`exit 1`, `got "0.8471": multiply pixels from 0 to 1 by 255`},
		"u2-pixels.csv":          {`exit 1`, `must be an integer from 0 to 255, got "55512"`},
		"binary-pixels.csv":      {`pixels of the training images are only 0 to 1, of 0 to 255`},
		"unit-int.csv":           {`pixels of the training images are only 0 to 1, of 0 to 255`},
		"u1-of-unit.npz":         {`pixels of the training images are only 0 to 1, of 0 to 255`},
		"float-images.npz":       {`exit 1`, `got float32: save \(255 \* images\)\.round\(\)`},
		"float-labels.npz":       {`exit 1`, `labels must be integers or text, got float64: save labels\.astype`},
		"u2-images.npz":          {`exit 1`, `got uint16: state the number of their significant bits, 8 to 16, as bits`},
		"i8-images.npz":          {`exit 1`, `got int64: save images\.astype\(numpy\.uint8\)`},
		"i1-images.npz":          {`exit 1`, `got int8: save images\.view\(numpy\.uint8\)`},
		"bool-images.npz":        {`in 3 classes`},
		"strings.npz":            {`in 3 classes`},
		"objects.npz":            {`exit 1`, `labels must be integers or text, got object: save labels\.astype\(str\)`},
		"onehot.npz":             {`exit 1`, `got \[300 3\]: save labels\.argmax\(1\)`},
		"fortran.npz":            {`exit 1`, `got Fortran order: save numpy\.ascontiguousarray`},
		"flat.npz":               {`exit 1`, `got dimensions \[300 784\]: save images\.reshape`},
		"five.npz":               {`exit 1`, `must have 1 to 4 dimensions, got 5`},
		"short.npz":              {`exit 1`, `one label for each image, got \[299\]`},
		"empty.npz":              {`exit 1`, `dimension must be positive, got "0"`},
		"chw.npz":                {`images of 3x28x28 in 3 classes`},
		"chw-width4.npz":         {`dimensions \[300 3 28 4\] are read as \[N H W C\], 4 channels`},
		"only-images.npz":        {`exit 1`, `must have a label for each image`},
		"xy.npz":                 {`in 3 classes`},
		"XY.npz":                 {`in 3 classes`},
		"emnist":                 {`EMNIST stores images transposed`, `the classes are the labels 1 to 3`},
		"cifar-bin":              {`exit 1`, `must have the file batches.meta.txt next to data_batch_1.bin`},
	},
	"kaggle.py": {
		"both":     {`test.csv: left out, since it has no labels`, `both, 128 images`},
		"labelled": {`labelled, 161 images`},
		"pair.npz": {`test_images: left out, since it has no labels`},
		"ids.csv":  {`column 1, "id", is not read, since it numbers the images`},
		"test.csv": {`exit 1`, `must have a label for each image`},
		"test.npz": {`exit 1`, `must have training images`},
	},
	"pictures.py": {
		"b6-empty":                   {`empty directories, which are no classes: empty`},
		"b6-pycache":                 {`in 2 classes`},
		"b6-eadir":                   {`in 2 classes`},
		"b6-eadir-pics":              {`b6-eadir-pics, 154 images of 1x28x28 in 2 classes`},
		"b6-checkpoints-pics":        {`b6-checkpoints-pics, 154 images of 1x28x28 in 2 classes`},
		"b6-recycle.bin":             {`in 2 classes`},
		"b6-recycle":                 {`in 2 classes`},
		"b6-lostfound":               {`in 2 classes`},
		"b6-systemvolumeinformation": {`in 2 classes`},
		"b6-thumbs":                  {`in 2 classes`},
		"deep-png":                   {`16 bits per channel \(240\) have values of 0 to 163 only`},
		"deep-rgb-png":               {`16 bits per channel \(240\) have values of 0 to 163 only`},
		"deep-pgm":                   {`16 bits per channel \(240\) have values of 0 to 163 only`},
		"deep-pgm4095":               {`in 2 classes`},
		"twelve-png":                 {`have values of 0 to 4080 only`},
		"float-tiff":                 {`exit 1`, `samples must be whole and unsigned, got float`},
		"i32-tiff":                   {`exit 1`, `samples must be whole and unsigned, got signed`},
		"b12":                        {`b12: skipped 4 files, first rose/0000.png`},
		"b12-jpeg-cut":               {`skipped 2 files`, `images of 1x28x28`},
		"b12-fifo":                   {`skipped 1 file, .*it must be a regular file, got a named pipe`},
		"b12-jp2":                    {`do not have the extension of an image: 20 \.jp2`},
		"b13":                        {`(?m)^Größe +77`, `(?m)^花 +77`},
		"b13-nfd":                    {`(?m)^rose +77`},
		"b13-both":                   {`(?m)^Größe +64 +16 +40$`},
		"b13-twins":                  {`the directories "Gro\\u0308\\u00dfe" and "Gr\\u00f6\\u00dfe" are one class`},
		"b13-case":                   {`the classes "Rose" and "rose" differ only in upper and lower case`},
		"b13-space":                  {`the directories "rose" and "rose " are one class`},
		"b13-odd":                    {`(?m)^"tu\\nlip" +77`},
		"b13-latin1":                 {`exit 1`, `class names must be UTF-8, got "Gr\\xf6\\xdfe"`},
		"b14":                        {`b14, 154 images of 1x28x28 in 2 classes`},
		".dotted/in/.here":           {`in 2 classes`},
		"b14-hidden":                 {`exit 2`, `at least 2 classes`},
		"b15":                        {`47 of 60 test images are copies of images in other splits`},
		"b15-split":                  {`55 of 60 test images are copies`, `48 of 48 validation images are copies`},
	},
	"folders2.py": {
		"valid_test":  {`(?m)^class +train +validation +test$`, `(?m)^rose +80 +20 +20$`},
		"trainval":    {`(?m)^class +train +validation +test$`},
		"trainonly":   {`in 2 classes`},
		"t-split":     {`(?m)^rose +72 +18 +30$`},
		"t-half":      {`120 of 240 images are left out, since they are not in train.csv`},
		"t-titlecase": {`differ only in upper and lower case`},
		"t-nan":       {`1 of 240 records have the class "nan"`},
		"t-space":     {`in 2 classes`},
		"t-no-ext":    {`240 of 240 files are found without regard to their extension`},
		"t-no-ext2":   {`240 of 240 files are found without regard to their extension`},
		"t-backslash": {`in 2 classes`},
		"t-absolute":  {`files are found by the last part of their path`},
		"t-case":      {`files are found without regard to their extension`},
		"t-other-ext": {`files are found without regard to their extension`},
		"t-onehot":    {`(?m)^MEL +77`},
		"t-empty":     {`1 of 240 records have no class, and their images are left out, such as 0007.png`},
		"t-twice":     {`exit 1`, `0001.png has the class rose in record 2, and tulip in record 3`},
		"t-multi":     {`classes that join others are classes of their own`},
		"t-unnamed":   {`exit 1`, `at most 5 % of the files may be skipped, got 120 of 240`},
		"upper":       {`upper, 154 images`},
		"masks":       {`(?m)^images +154`, `(?m)^masks +38`, `120 images have copies with another label`},
		"loop":        {`exit 1`, `directories must be at most 32 deep \(does a link lead back up\?\)`},
		"flowers.zip": {`exit 1`, `flowers.zip: archives are not read: unpack it and give the directory`},
	},
	"splits.py": {
		"bursts":           {`look like 50 sequences of images, and 50 of them are in several splits`},
		"rare":             {`(?m)^rare +6 +2 +2$`, `rare`},
		"rare-1":           {`(?m)^rare +1 +0 +0$`, `have no test images: rare`},
		"rare-2":           {`(?m)^rare +1 +0 +1$`},
		"numbers":          {`(?s)\n1 .*\n2 .*\n10 .*\n12 `},
		"one-class":        {`exit 2`, `at least 2 classes`},
		"one-each":         {`exit 2`, `a class must have at least 2 images to draw one from`},
		"many.npz":         {`exit 2`, `--test 0 or --validation 0 disables the split`},
		"black":            {`all pixels of the training images are 0`},
		"const-pixel":      {`in 2 classes`},
		"const-channel":    {`in 2 classes`},
		"no-class-in-test": {`1 of 12 classes have no test images: 4`},
	},
	"more_labels.py": {
		"svhn10.npz":         {`no training image has the labels 0, 3 to 9: the classes are the labels 1, 2, 10`},
		"constant-label.npz": {`exit 2`, `at least 2 classes`},
		"two-labels.npz":     {`600 images have copies with another label`},
		"all-same.npz":       {`300 images have copies with another label`},
		"all-black.npz":      {`all pixels of the training images are 0`},
		"hwcn.npz":           {`exit 1`, `save numpy\.moveaxis\(images, -1, 0\)`},
		"idx-html":           {`exit 1`, `begins an HTML page, which servers send instead of a missing file`},
		"idx-float":          {`exit 1`, `\(values of float32\): save array\.astype\(numpy\.uint8\)`},
		"idx-int":            {`exit 1`, `\(values of int32\)`},
		"idx-swapped":        {`exit 1`, `dimensions must be \[N H W\]`},
	},
}

// TestHostileReports fits a small network to every data set of the reports, and predicts all their
// images.
func TestHostileReports(t *testing.T) {
	testenv.NeedsAll(t, "150 commands")
	generators, err := filepath.Abs(filepath.Join("..", "..", "..", "shared", "cases", "reports"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(generators); err != nil {
		t.Skipf("the reports are left out: %v", err)
	}
	python := os.Getenv("POLLEN_PYTHON")
	if python == "" {
		python = "python3"
	}
	if out, err := exec.Command(python, "-c", "import numpy, PIL").CombinedOutput(); err != nil {
		t.Skipf("the reports are left out, POLLEN_PYTHON must have numpy and Pillow: %v: %s", err, out)
	}
	h := hostileCases{newProcesses(t), generators, python}
	var all []watched
	for script, sets := range reportedData {
		root := h.path(script)
		command := exec.Command(python, filepath.Join(generators, script), root)
		command.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", script, err, out)
		}
		for name, want := range sets {
			all = append(all, h.fitReported(filepath.Join(root, name), want)...)
		}
	}
	h.largest(append(all, h.predictReported()...))
}

// fitReported fits a network to a data set, or only estimates the time where the result does not
// matter, and checks what is printed.
func (h hostileCases) fitReported(data string, want []string) []watched {
	h.t.Helper()
	run := h.path("run")
	estimate := "--estimate"
	if slices.Contains([]string{"big.npz", "black", "rare-1", "b13", "no-class-in-test"}, filepath.Base(data)) {
		estimate = "--seed=1"
	}
	const command = `rm -rf "$1"; pollen-watched fit --data "$0" --model mlp-8 --method sgd --epochs 1 --threads 1 --folder "$1" "$2"; true`
	out, took := h.run("bash", "-c", command, data, run, estimate)
	code := 0
	if want[0] == "exit 1" || want[0] == "exit 2" {
		code, want = int(want[0][5]-'0'), want[1:]
	}
	name := filepath.Base(data)
	if took[0].Code != code || strings.Contains(out, "goroutine ") {
		h.t.Errorf("%s: exit code %d, want %d: %.2000s", name, took[0].Code, code, out)
	}
	for _, pattern := range want {
		if !regexp.MustCompile(pattern).MatchString(out) {
			h.t.Errorf("%s: want %q, got %.3000s", name, pattern, out)
		}
	}
	return took
}

// predictReported predicts the images of formats2.py, pictures.py and bombs.py: files with the same
// image have the same probabilities, and others are refused with a reason.
func (h hostileCases) predictReported() (all []watched) {
	h.t.Helper()
	for _, script := range []string{"formats2.py", "bombs.py"} {
		if out, err := exec.Command(h.python, filepath.Join(h.generators, script), h.path(script)).CombinedOutput(); err != nil {
			h.t.Fatalf("%s: %v: %s", script, err, out)
		}
	}
	h.want(0, "pollen", strings.Fields("fit --data folders2.py/t-plain --model mlp-8 --method sgd --epochs 2 --threads 1 --folder pictured"))
	type answer struct {
		File, Error   string
		Probabilities []float64
	}
	answers := map[string]answer{}
	for _, dir := range []string{"formats2.py", "pictures.py/alpha", "pictures.py/cmyk", "pictures.py/turn", "bombs.py"} {
		out, took := h.run("bash", "-c", `pollen-watched predict pictured "$0" --threads 1 --format jsonl; true`, dir)
		all = append(all, took...)
		if strings.Contains(out, "goroutine ") {
			h.t.Errorf("%s: %.2000s", dir, out)
		}
		for _, line := range strings.Split(out, "\n") {
			var a answer
			if json.Unmarshal([]byte(line), &a) == nil && a.File != "" {
				answers[filepath.Join(filepath.Base(dir), filepath.Base(a.File))] = a
			}
		}
	}
	for _, same := range [][]string{
		{"formats2.py/ramp.png", "formats2.py/g8.tif", "formats2.py/g8-white0.tif", "formats2.py/g16.tif", "formats2.py/g16-white0.tif", "formats2.py/g16-be.tif",
			"formats2.py/tiled16.tif", "formats2.py/pages.tif", "formats2.py/comment.pgm", "formats2.py/two-in-one.pgm", "formats2.py/grey.bmp"},
		{"formats2.py/g4.png", "formats2.py/g4.tif", "formats2.py/g4-white0.tif"},
		{"formats2.py/g2.png", "formats2.py/g2.tif"},
		{"formats2.py/rgb.png", "formats2.py/rgb.bmp", "formats2.py/rgb.webp", "formats2.py/anim.webp", "formats2.py/apng.png", "formats2.py/gamma.png",
			"formats2.py/c-packbits.tif", "formats2.py/c-tiff_adobe_deflate.tif", "formats2.py/c-tiff_lzw.tif", "formats2.py/png-junk-after.png",
			"formats2.py/png-no-iend.png", "formats2.py/png-bad-iend-crc.png", "formats2.py/png-bad-text-crc.png"},
		{"formats2.py/rgb.jpg", "formats2.py/jpeg-no-eoi.jpg", "formats2.py/jpeg-junk-after.jpg", "formats2.py/jpeg-junk-before-sos.jpg"},
		{"alpha/l.png", "alpha/la8.png", "alpha/la16.png", "alpha/rgba8.png", "alpha/rgba16.png", "alpha/p-trns.png", "alpha/p1-trns.png", "alpha/l-trns.png",
			"alpha/l16-trns.png", "alpha/rgb-trns.png", "alpha/rgba.webp", "alpha/rgba.gif", "alpha/rgba.tif", "alpha/la.tif"},
		{"cmyk/adobe.jpg", "cmyk/no-app14.jpg"},
		{"turn/upright.png", "turn/six.png", "turn/six.tif", "turn/six-tag.tif", "turn/six.webp"},
		{"turn/six.jpg", "turn/six-icc.jpg", "turn/six-com.jpg", "turn/six-xmp-first.jpg", "turn/six-fill.jpg"},
	} {
		for _, name := range same {
			if got, want := answers[name], answers[same[0]]; len(want.Probabilities) == 0 || !slices.Equal(got.Probabilities, want.Probabilities) {
				h.t.Errorf("%s has the answer %+v, want that of %s, %+v", name, got, same[0], want)
			}
		}
	}
	for name, want := range map[string]string{
		"formats2.py/c-jpeg.tif": "got JPEG: save the image as", "formats2.py/c-zstd.tif": "got ZSTD", "formats2.py/c-lzma.tif": "got LZMA",
		"formats2.py/signed8.tif":    "got signed",
		"formats2.py/gif-beyond.gif": "frame bounds larger", "formats2.py/p4.pnm": "got PBM", "formats2.py/p7.pnm": "got PAM",
		"formats2.py/png-bad-idat-crc.png": "invalid checksum", "bombs.py/png-65535.png": "pixels",
		"bombs.py/webp-16383.webp": "pixels", "bombs.py/tif-count.tif": "",
		"bombs.py/bmp-minus.bmp": "", "bombs.py/gif-65535.gif": "pixels", "bombs.py/jpg-65500.jpg": "unexpected EOF", "bombs.py/ppm-digits.ppm": "",
	} {
		if got := answers[name]; got.Error == "" || !strings.Contains(got.Error, want) {
			h.t.Errorf("%s has the error %q, want %q", name, got.Error, want)
		}
	}
	for _, name := range []string{"formats2.py/gif-part.gif", "formats2.py/gif-corner.gif"} {
		if got := answers[name]; got.Error != "" || slices.Equal(got.Probabilities, answers["formats2.py/gif-whole.gif"].Probabilities) {
			h.t.Errorf("%s has the answer %+v, want that of a frame on a white canvas", name, got)
		}
	}
	return all
}
