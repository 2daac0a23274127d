package bayes

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"path"
	"path/filepath"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/pretrained"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// Manifest describes a run completely enough to repeat it.
type Manifest struct {
	// Format is rundir.Format; runs of another format cannot be read.
	Format int `json:"format"`
	// Spec is the specification with all defaults filled in, so that a later version with other
	// defaults repeats the same run.
	Spec Spec `json:"config"`
	// Notes are the caller's, see WithNotes.
	Notes map[string]string `json:"notes,omitempty"`
	Data  Data              `json:"data"`
	// Model is the ONNX file of the network, nil for other networks.
	Model *ModelFile `json:"model,omitempty"`
	// Device is the text of Describe for the device that began the run.
	Device string `json:"device"`
	// Steps is the number of steps of the whole run, and Parameters the number of weights of the
	// network.
	Steps      int `json:"steps"`
	Parameters int `json:"parameters"`
	// Watched is the weight whose trace is recorded, such as "conv1.weight[125]".
	Watched string `json:"watched"`
	// Parts are the directories of a gathered run's parts, relative to its own; none otherwise.
	Parts []string `json:"parts,omitempty"`
	// Teacher is the run that this one was distilled from, nil for other methods.
	Teacher *Teacher `json:"teacher,omitempty"`
	// Build is the program that began the run.
	Build
	// Continued lists the parts of the run that were made by other builds or devices.
	Continued []Continued `json:"continued,omitempty"`
}

// kind returns the kind of the run's method, which has one: the specification is resolved.
func (m *Manifest) kind() methodKind {
	kind, err := kindOf(m.Spec.Method)
	if err != nil {
		panic(err)
	}
	return kind
}

// NetworkNote is the name of a note, see WithNotes: the path of the network file that has the text
// of Spec.Network.
const NetworkNote = "model"

// NetworkName returns the name of the network, see Spec.NetworkName. The name of a network file is
// its base name if the notes have it.
func (m *Manifest) NetworkName() string {
	if path := m.Notes[NetworkNote]; path != "" && m.Spec.Layers == nil && isNetworkFile(m.Spec.Network) {
		return filepath.Base(path)
	}
	return m.Spec.NetworkName()
}

// Data describes what a run is trained on, which is also what it can predict.
type Data struct {
	Name string `json:"name"`
	// Size is the number of examples trained on, after Spec.Subset.
	Size int `json:"size"`
	// Images have Channels planes of Height by Width bytes.
	Channels int `json:"channels"`
	Height   int `json:"height"`
	Width    int `json:"width"`
	// Crop is datasets.Options.Crop: images are cropped to the aspect ratio before they are scaled.
	Crop bool `json:"crop,omitempty"`
	// Bits is datasets.Options.Bits: the significant bits of images with 16 bits per channel.
	Bits int `json:"bits,omitempty"`
	// ClassNames are the names of the classes, in the order of the logits.
	ClassNames []string `json:"classNames"`
	// Mean and Std are the mean and standard deviation of pixel/255, by channel, over the images
	// trained on. Inputs of the network are (pixel/255 - Mean)/Std, in training and in prediction.
	Mean []float64 `json:"mean"`
	Std  []float64 `json:"std"`
	// Content is the SHA-256 of the images and labels trained on. Resume compares it.
	Content string `json:"content,omitempty"`
	// Hashes are the checksums of the files that the data came from, for the record.
	Hashes map[string]string `json:"hashes,omitempty"`
	// Remarks are the data set's, see datasets.Dataset.
	Remarks []string `json:"remarks,omitempty"`
}

// Classes returns the number of classes.
func (d Data) Classes() int { return len(d.ClassNames) }

// describeData returns a manifest's description of data, without Content.
func describeData(d *datasets.Dataset) *Data {
	return &Data{
		Name: d.Name, Size: d.Len(), Channels: d.Channels, Height: d.Height, Width: d.Width, Crop: d.Cropped, Bits: d.Bits, ClassNames: d.ClassNames,
		Mean: d.Mean, Std: d.Std, Hashes: d.Hashes, Remarks: d.Remarks,
	}
}

// imagesLike returns images with the shape and the moments of data.
func imagesLike(d *datasets.Dataset, pixels []byte) samples.Images {
	return samples.Images{Channels: d.Channels, Height: d.Height, Width: d.Width, Mean: d.Mean, Std: d.Std, Pixels: pixels}
}

// checkImages refuses a data set that the network of the run in dir, which is trained on d, cannot
// predict.
func (d *Data) checkImages(dir string, data *datasets.Dataset) error {
	if data == nil || data.Len() == 0 {
		return invalid("%s: no images to predict", dir)
	}
	if data.Channels != d.Channels || data.Height != d.Height || data.Width != d.Width {
		return invalid("%s has images of %dx%dx%d, must have the %dx%dx%d of %s, the training images of %s", data.Name,
			data.Channels, data.Height, data.Width, d.Channels, d.Height, d.Width, d.Name, dir)
	}
	return nil
}

// relabelled returns a data set whose labels are the numbers of the classes of the run in dir,
// which is trained on d. Each data set numbers its own classes, so that "dog" may be 1 in one and 0
// in another: labels are matched by class name. Missing labels and classes that the run was not
// trained on are errors.
func (d *Data) relabelled(dir string, data *datasets.Dataset) (*datasets.Dataset, error) {
	if err := d.checkImages(dir, data); err != nil {
		return nil, err
	}
	if err := checkLabelled(data); err != nil {
		return nil, err
	}
	if slices.Equal(data.ClassNames, d.ClassNames) {
		return data, nil
	}
	numbers := make([]int32, len(data.ClassNames))
	for i, name := range data.ClassNames {
		at := slices.Index(d.ClassNames, name)
		if at < 0 {
			return nil, invalid("%s has a class %q, but the classes of %s are %s: %s",
				data.Name, name, dir, strings.Join(d.ClassNames, ", "), d.classAdvice(name, data.ClassNames))
		}
		numbers[i] = int32(at)
	}
	other := *data
	other.Classes, other.ClassNames, other.Labels = d.Classes(), d.ClassNames, make([]int32, len(data.Labels))
	for i, label := range data.Labels {
		other.Labels[i] = numbers[label]
	}
	return &other, nil
}

// classAdvice returns what to do about data with a class that the run does not have.
func (d *Data) classAdvice(class string, names []string) string {
	plain := func(name string) string {
		return strings.ToLower(strings.NewReplacer("-", " ", "_", " ").Replace(name))
	}
	isNumber := func(name string) bool { _, err := strconv.Atoi(name); return err == nil }
	for _, known := range d.ClassNames {
		if plain(known) == plain(class) {
			return fmt.Sprintf("name it %q, since classes are matched by name, case included", known)
		}
	}
	if isNumber(class) && !slices.ContainsFunc(d.ClassNames, isNumber) {
		return fmt.Sprintf("numbers are not matched with names; name the classes like the run's, which are numbered in this order: 0 is %s", d.ClassNames[0])
	}
	var unknown []string
	for _, name := range names {
		if !slices.Contains(d.ClassNames, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == len(names) {
		return "it has none of these, and can only be scored as out of distribution"
	}
	return fmt.Sprintf("leave out what the run does not know, by without-classes=%s, or take such images as out of distribution", strings.Join(unknown, ","))
}

// contentHash returns the SHA-256 of a data set's images and labels.
func contentHash(d *datasets.Dataset) string {
	hash := sha256.New()
	hash.Write(d.Images)
	hash.Write(tensor.Bytes(d.Labels))
	return hex.EncodeToString(hash.Sum(nil))
}

// isOf reports whether d describes data, apart from names. The content is compared last, since a
// hash of all pixels takes the longest.
func (d Data) isOf(data *datasets.Dataset) bool {
	return d.Size == data.Len() && d.Channels == data.Channels && d.Height == data.Height && d.Width == data.Width &&
		slices.Equal(d.ClassNames, data.ClassNames) && slices.Equal(d.Mean, data.Mean) && slices.Equal(d.Std, data.Std) &&
		d.Content == contentHash(data)
}

// Teacher identifies the run that another one was distilled from.
type Teacher struct {
	// Digest is its Run.Digest when the distillation began.
	Digest string `json:"digest"`
	// Samples is the number of predictions that it averages.
	Samples int `json:"samples"`
	// Method and Network are as in its Spec.
	Method  string `json:"method"`
	Network string `json:"network"`
	// Unlabelled is the SHA-256 of the images of WithUnlabelled, and UnlabelledImages their number.
	Unlabelled       string `json:"unlabelled,omitempty"`
	UnlabelledImages int    `json:"unlabelledImages,omitempty"`
}

// ButSeed returns a text that is the same for runs that differ only in their seed. A report groups
// repetitions by it.
func (m Manifest) ButSeed() string {
	texts := m.Spec.Texts()
	delete(texts, "seed")
	return fmt.Sprint(m.Data.Name, m.Data.Content, m.Data.Hashes, texts) // maps are printed in the order of their keys
}

// ReadManifest reads the manifest of the run in dir. The error is NotARunError if there is none,
// and DamagedError if it was changed or another version of Pollen wrote it in a format that this
// one cannot read.
func ReadManifest(dir string) (m *Manifest, err error) {
	err = rundir.ReadManifest(dir, func(content []byte) error {
		m, err = parseManifest(content)
		return err
	})
	if err == nil && m.Spec.isPretrained() {
		m.Spec.file, err = m.copiedModel(dir)
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Network returns the Spec's network. If that is an ONNX file that is gone, or has been replaced,
// it is the path of the copy in dir, the run's directory.
func (m *Manifest) Network(dir string) (string, error) {
	if !m.Spec.isPretrained() {
		return m.Spec.Network, nil
	}
	copied, err := m.copiedModel(dir)
	if err != nil {
		return "", err
	}
	if pretrained.OpenCopy(m.Spec.Network, m.Spec.Network, m.Model.Digest).Check() == nil {
		return m.Spec.Network, nil
	}
	return m.modelPath(dir), copied.Check()
}

// copiedModel returns the copy of the model in the directory of a run.
func (m *Manifest) copiedModel(dir string) (*pretrained.File, error) {
	if m.Model == nil || len(m.Model.Files) == 0 || !filepath.IsLocal(filepath.FromSlash(m.Model.Files[0])) {
		return nil, errors.New("pollen: manifest: model must have at least one file below the run's directory")
	}
	return pretrained.OpenCopy(m.Spec.Network, m.modelPath(dir), m.Model.Digest), nil
}

// modelPath returns the path of that copy.
func (m *Manifest) modelPath(dir string) string {
	return filepath.Join(dir, rundir.ModelDir, filepath.FromSlash(m.Model.Files[0]))
}

func parseManifest(content []byte) (*Manifest, error) {
	m := &Manifest{}
	if err := json.Unmarshal(content, m); err != nil {
		return nil, errors.Wrap(err, "pollen: manifest")
	}
	return m, errors.WithMessage(m.check(), "pollen: manifest")
}

// maxClasses is the largest number of classes of a data set, which package datasets allows.
const maxClasses = math.MaxUint16 + 1

// check refuses values that no run writes, and fills in the fields that the specification leaves
// out. It keeps the network's name as it was written: "" if the manifest had none.
func (m *Manifest) check() (err error) {
	network := m.Spec.Network
	if m.Spec, err = m.Spec.Resolve(); err != nil {
		return err
	}
	m.Spec.Network = network
	d := &m.Data
	switch {
	case d.Size < 1:
		return errors.Errorf("data: size must be at least 1, got %d", d.Size)
	case d.Channels < 1 || d.Height < 1 || d.Width < 1:
		return errors.Errorf("data: images must be at least 1x1x1, got %dx%dx%d", d.Channels, d.Height, d.Width)
	case len(d.Mean) != d.Channels || len(d.Std) != d.Channels:
		return errors.Errorf("data: mean and std must have a number for each of %d channels, got %d and %d", d.Channels, len(d.Mean), len(d.Std))
	case d.Classes() < 2 || d.Classes() > maxClasses:
		return errors.Errorf("data: classNames must be at least 2 and at most %d, got %d", maxClasses, d.Classes())
	case m.Steps < 1 || m.Parameters < 1:
		return errors.Errorf("steps and parameters must be at least 1, got %d and %d", m.Steps, m.Parameters)
	case m.Spec.Batch > 0 && !m.Spec.hasSteps(m.Steps, d.Size):
		return errors.Errorf("steps must be those of %d epochs with batches of %d of %d examples, got %d", m.Spec.Epochs, m.Spec.Batch, d.Size, m.Steps)
	case len(m.Parts) > m.Spec.Chains:
		return errors.Errorf("parts must be at most %d, the number of chains, got %d", m.Spec.Chains, len(m.Parts))
	}
	classes := map[string]bool{}
	for _, name := range d.ClassNames {
		if classes[name] {
			return errors.Errorf("data: classNames must differ, got %q twice", name)
		}
		classes[name] = true
	}
	parts := map[string]bool{}
	for _, place := range m.Parts {
		if place = path.Clean(place); parts[place] {
			return errors.Errorf("parts must differ, got %q twice", place)
		}
		parts[place] = true
	}
	for c := range d.Channels {
		// mean-mean is NaN, and so not 0, if mean is NaN or infinite.
		if mean, std := d.Mean[c], d.Std[c]; mean-mean != 0 || !(std > 0 && std < math.Inf(1)) {
			return errors.Errorf("data: mean must be finite and std finite and positive, got %v and %v in channel %d", mean, std, c)
		}
	}
	return nil
}

// hasSteps reports whether the specification's epochs have the given number of steps on the given
// number of examples.
func (s *Spec) hasSteps(steps, examples int) bool {
	return float64(steps) == math.Floor(float64(examples)/float64(s.Batch)*float64(s.Epochs))
}

// ourModule is the module whose revision a manifest records.
const ourModule = "github.com/pollen-ml/pollen"

// unknownRevision is the revision of builds that record none: go run leaves it out, as does go
// build with -buildvcs=false or outside the repository.
const unknownRevision = "unknown: build with go build in a clone, or with go run -buildvcs=true"

// Build is what a program was built from, as far as Go records it.
type Build struct {
	Revision string            `json:"revision"` // a commit, or a module's version
	Modified bool              `json:"modified"` // the files differed from that revision, or this is unknown
	Versions map[string]string `json:"versions"` // of Go, and of the modules that make graphs
}

// Continued is a part of a run that was made by another build or on another device than the part
// before it.
type Continued struct {
	From   int    `json:"from"` // steps made before it
	Device string `json:"device"`
	Build
}

func (c Continued) note() string {
	modified := ""
	if c.Modified {
		modified = ", modified"
	}
	return fmt.Sprintf("the steps after %d were made by the build %s%s, on %s", c.From, c.Revision, modified, c.Device)
}

// continuedBy returns the parts of a run after made steps if build makes the next ones on device.
// Parts that begin at or after made steps are left out, since their steps are made again: a
// checkpoint before them was restored. A new part is added only if build or device differ from the
// last part's.
func (m *Manifest) continuedBy(made int, device string, build Build) []Continued {
	later := func(c Continued) bool { return c.From >= made }
	parts := slices.DeleteFunc(slices.Clone(m.Continued), later)
	last, now := Continued{0, m.Device, m.Build}, Continued{made, device, build}
	if len(parts) > 0 {
		last = parts[len(parts)-1]
	}
	last.From = made
	if !reflect.DeepEqual(last, now) {
		parts = append(parts, now)
	}
	return parts
}

// thisBuild returns what this program was built from.
func thisBuild() Build {
	info, _ := debug.ReadBuildInfo()
	return buildOf(info)
}

// buildOf reads what Go's linker recorded; info is nil if it recorded nothing. The recorded commit
// is the main module's: a program of another module that imports ours has ours by its version.
func buildOf(info *debug.BuildInfo) Build {
	b := Build{Revision: unknownRevision, Modified: true, Versions: map[string]string{"go": runtime.Version()}}
	if info == nil {
		return b
	}
	// A program of another module lists ours among its dependencies, perhaps replaced by a fork or
	// by a directory, whose version is unknown.
	var ours *debug.Module
	if info.Main.Path == ourModule {
		ours = &info.Main
	}
	for _, dependency := range info.Deps {
		if strings.HasPrefix(dependency.Path, "gorgonia.org/") {
			b.Versions[dependency.Path] = dependency.Version
		}
		if dependency.Path == ourModule {
			ours = dependency
		}
	}
	if ours == nil {
		return b
	}
	settings := map[string]string{}
	if ours == &info.Main {
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
	}
	switch commit := settings["vcs.revision"]; {
	case commit != "":
		b.Revision, b.Modified = commit, settings["vcs.modified"] != "false"
	case ours.Replace != nil && isVersion(ours.Replace.Version):
		b.Revision, b.Modified = ours.Replace.Path+"@"+ours.Replace.Version, false
	case ours.Replace == nil && isVersion(ours.Version):
		b.Revision, b.Modified = ours.Version, false
	}
	return b
}

// isVersion reports whether a module's version identifies its source: a directory's does not.
func isVersion(version string) bool { return version != "" && version != "(devel)" }

// Difference returns the first setting in which a run differs from the specification asked for,
// with both texts; the name is empty if there is none. What Auto chose or a pilot found for the run
// is not a difference.
func (m Manifest) Difference(asked Spec) (name, ours, theirs string) {
	return m.Spec.difference(asked.decidedAs(&m))
}

// decidedAs returns the specification for the data of a run, with what Auto chose and pilots found
// for it. It is for comparisons of a configuration with the run it began: "auto" and the sampler
// that it chose are then the same.
func (s Spec) decidedAs(run *Manifest) Spec {
	examples := run.Data.Size
	if s.isPretrained() && s.Network == run.Spec.Network {
		s.file = run.Spec.file
	}
	s = s.recommendedAs(run).namedFor(examples)
	if whole, err := s.withModel(); err == nil { // an error is found when the model is used
		s = whole
	}
	if _, ok := s.Method.(Auto); ok && mayChoose(run.Spec.Method) {
		s.Method, s.Schedule, s.Batch, s.Budget = run.Spec.Method, run.Spec.Schedule, cmp.Or(s.Batch, run.Spec.Batch), 0
		s.Epochs, s.Chains = cmp.Or(s.Epochs, run.Spec.Epochs), cmp.Or(s.Chains, run.Spec.Chains)
		s.Samples, s.Prior = cmp.Or(s.Samples, run.Spec.Samples), cmp.Or(s.Prior, run.Spec.Prior)
	}
	resolved, err := s.resolve(examples)
	if err != nil {
		return s
	}
	if c, err := kindOf(resolved.Method); err == nil && c.traits().exact {
		resolved.Batch = cmp.Or(resolved.Batch, run.Spec.Batch)
	}
	return resolved
}

// recommendedAs returns the recommended specification for the data of a run, with what pilots found
// for the run.
func (s Spec) recommendedAs(run *Manifest) Spec {
	d := &run.Data
	side, warm := min(d.Height, d.Width), run.Spec.WarmStart != nil
	r := s.recommended(warm, d.Size, side)
	if s.needsLength(r) {
		s.Epochs = min(run.Spec.Epochs, r.Epochs)
	}
	if s.needsMirroring(r, d.Size) && run.Spec.Augment != nil {
		s.Augment = &Augment{Flip: run.Spec.Augment.Flip, Shift: r.Augment.Shift}
	}
	return s.recommended(warm, d.Size, side)
}
