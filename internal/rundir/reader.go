package rundir

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/internal/index"
	"github.com/pollen-ml/pollen/samples"
)

// Reader lists the samples of a run, which another process may be writing. It takes no lock: it
// depends on the order in which a Writer writes (file, index, checkpoint, removal) and reads in the
// opposite order.
type Reader struct {
	// Dir is the directory of the run.
	Dir string
	// Keep is the maximum number of samples of each chain, see Retention; 0 for all. If it is
	// positive, files may vanish while they are read.
	Keep int
	// WithoutDamaged leaves damaged and missing files out; they are errors otherwise.
	WithoutDamaged bool
	// Remark receives sentences for a person.
	Remark func(text string)
	// LeftOut collects the files that were left out. It must not be nil.
	LeftOut *LeftOut
}

// LeftOut remembers which files were left out. It may be shared by Readers and goroutines.
type LeftOut struct {
	mu    sync.Mutex
	files []string
}

// Files returns the paths of the files that were left out so far.
func (l *LeftOut) Files() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.files)
}

// add adds a file, and reports whether it was not there before.
func (l *LeftOut) add(path string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.Contains(l.files, path) {
		return false
	}
	l.files = append(l.files, path)
	return true
}

// leave leaves a file out, and remarks that once.
func (r *Reader) leave(path string, why error) {
	if r.LeftOut.add(path) {
		r.Remark(fmt.Sprintf("left out %s: %v", path, why))
	}
}

// Skip leaves a damaged sample out, if the Reader may do so; otherwise it returns DamagedError. If
// the sample was dropped since it was listed, Skip returns an error for that.
func (r *Reader) Skip(path string, cause error) error {
	if r.Keep > 0 && wasDropped(path) {
		return r.droppedMeanwhile()
	}
	if !r.WithoutDamaged {
		return damaged(path, cause)
	}
	r.leave(path, cause)
	return nil
}

// File is a sample of a run.
type File struct {
	Path string
	Sum  string // the checksum that the index lists; "" if the index was left out
}

// Read reads the sample, and checks that it is the one that the index lists, and of the chain and
// step in its name.
func (f File) Read() (samples.Sample, error) {
	s, sum, err := samples.ReadWithChecksum(f.Path)
	if err == nil && f.Sum != "" && sum != f.Sum {
		err = errOther
	}
	if err == nil {
		err = checkNamed(f.Path, s)
	}
	if err == nil {
		err = checkWeight(s)
	}
	return s, err
}

// checkWeight refuses a sample of no weight in averages. States, which are no samples of the
// posterior, may have none.
func checkWeight(s samples.Sample) error {
	if s.Weight > 0 {
		return nil
	}
	return errors.Errorf("its weight must be positive, got %v", s.Weight)
}

// checkNamed returns an error for a sample whose chain or step differs from its file's name.
func checkNamed(path string, s samples.Sample) error {
	if want := samples.FileName(s.Chain, s.Step); filepath.Base(path) != want {
		return errors.Errorf("it is the sample %s", want)
	}
	return nil
}

// ReadIntact is Read for a File that must be whole: its error is DamagedError.
func (f File) ReadIntact() (samples.Sample, error) {
	s, err := f.Read()
	if err != nil {
		err = damaged(f.Path, err)
	}
	return s, err
}

// The errors of files that do not agree with the index.
var (
	errOther     = errors.New("it is not the file that " + index.File + " lists")
	errNotListed = errors.New(index.File + " does not list it: it does not belong to this run")
	errMissing   = errors.New("there is no such file, but " + index.File + " lists it")
)

// List returns the samples of the run, by chain and then by step. A missing sample that the index
// lists is damage, as is a file that the index should list but does not.
//
// It does not read the samples, whose checksums are compared when they are used. An index that is
// damaged is left out as a whole if the Reader may do so: files then have no Sum.
func (r *Reader) List() ([]File, error) {
	dir := filepath.Join(r.Dir, SamplesDir)
	// In this order: samples that a process lists meanwhile are of later steps than the checkpoint.
	steps := checkpointSteps(r.Dir)
	x, err := ReadIndex(r.Dir)
	if err != nil {
		if err := r.Skip(filepath.Join(r.Dir, index.File), errors.Cause(err)); err != nil {
			return nil, err
		}
	}
	paths, err := samples.NewStore(dir).Files()
	if err != nil {
		return nil, damaged(dir, err)
	}
	if x == nil {
		files := make([]File, len(paths))
		for i, path := range paths {
			files[i].Path = path
		}
		return files, nil
	}
	files, err := r.takeListed(x, paths, steps)
	if err != nil {
		return nil, err
	}
	dropped, err := r.checkMissing(x)
	// The writer dropped samples after the index was read: list again, as the run is now.
	if dropped {
		return r.List()
	}
	return files, err
}

// takeListed returns the files that the index lists, and removes their lines from it, so that only
// lines of missing files remain. Unlisted files of later steps than the checkpoint are left out:
// they are being written.
func (r *Reader) takeListed(x *index.Index, paths []string, steps int) (files []File, err error) {
	unlisted := 0
	for _, path := range paths {
		name := SamplesDir + "/" + filepath.Base(path)
		line := x.Lines[name]
		delete(x.Lines, name)
		switch {
		case line.Sum != "":
			files = append(files, File{path, line.Sum})
		// About to be removed.
		case line.Dropped:
		case laterThan(filepath.Base(path), steps):
			unlisted++
		default:
			if err := r.Skip(path, errNotListed); err != nil {
				return nil, err
			}
		}
	}
	if unlisted > 0 {
		r.Remark(fmt.Sprintf("%s: %d samples are being written, or were when the process ended: left out", r.Dir, unlisted))
	}
	return files, nil
}

// checkMissing goes through the samples that the index lists and that have no file, after
// takeListed. It reports whether one was dropped after the index was read. Samples that the run
// itself lost are left out with a remark, never an error.
func (r *Reader) checkMissing(x *index.Index) (dropped bool, err error) {
	for _, name := range x.Names {
		line, missing := x.Lines[name]
		path := filepath.Join(r.Dir, filepath.FromSlash(name))
		switch {
		case filepath.Dir(filepath.FromSlash(name)) != SamplesDir || !missing || line.Dropped:
		case line.Lost == "" && r.Keep > 0 && wasDropped(path):
			return true, nil
		case line.Lost != "":
			r.leave(path, errors.New("the run continued without it: "+line.Lost))
		default:
			if err := r.Skip(path, errMissing); err != nil {
				return false, err
			}
		}
	}
	return false, nil
}

// Intact returns those files that are not damaged, if the Reader may leave damaged ones out;
// otherwise it returns all of them, unread.
func (r *Reader) Intact(files []File) ([]File, error) {
	if !r.WithoutDamaged {
		return files, nil
	}
	var left []File
	for _, f := range files {
		if _, err := f.Read(); err == nil {
			left = append(left, f)
		} else {
			r.leave(f.Path, err)
		}
	}
	if len(left) == 0 {
		return nil, errors.Errorf("pollen: all samples of %s are damaged", r.Dir)
	}
	return left, nil
}

// laterThan reports whether a name belongs to a sample of a step after steps.
func laterThan(name string, steps int) bool {
	_, step, err := samples.ParseFileName(name)
	return err == nil && step > steps
}

// wasDropped reports whether a sample's file is missing, or about to be, because its run keeps no
// more: the process that samples may have dropped it since the index was read.
func wasDropped(path string) bool {
	dir, name := filepath.Split(path)
	x, err := ReadIndex(filepath.Dir(filepath.Clean(dir)))
	return err == nil && x.Lines[SamplesDir+"/"+name].Dropped
}

// droppedMeanwhile is the error of reading samples while a process drops some: an average of those
// that are left and those that were read before would count some steps twice.
func (r *Reader) droppedMeanwhile() error {
	return errors.Errorf("pollen: %s dropped samples while they were read, to keep no more than %d of a chain: try again", r.Dir, r.Keep)
}

// sampleLine returns the index's line for a sample's file, and the sample. A file that is damaged,
// misnamed, or not the one that the index lists is an error. place is the file's path, and name its
// name in the index.
func sampleLine(place, name string, before *index.Index) (line index.Line, s samples.Sample, err error) {
	s, sum, err := samples.ReadWithChecksum(place)
	if err != nil {
		return line, s, err
	}
	if err := checkListed(name, sum, before); err != nil {
		return line, s, err
	}
	if err := checkNamed(place, s); err != nil {
		return line, s, err
	}
	info, err := os.Stat(place)
	if err != nil {
		return line, s, err
	}
	return index.Line{File: name, Bytes: int(info.Size()), Sum: sum}, s, nil
}

// checkListed refuses a file without a checksum, and one that is not the index's.
func checkListed(name, sum string, x *index.Index) error {
	if sum == "" {
		return errors.New("it has no checksum")
	}
	if x.Lines[name].Sum != "" && !x.Lists(name, sum) {
		return errOther
	}
	return nil
}

// CopyModel copies the ONNX file of a run's network, if there is one.
func CopyModel(to, from string) error {
	err := filepath.WalkDir(filepath.Join(from, ModelDir), func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return file.MakeDir(filepath.Join(to, name))
		}
		return copyFile(to, from, filepath.ToSlash(name))
	})
	if os.IsNotExist(errors.Cause(err)) {
		return nil
	}
	return errors.WithMessage(err, "pollen: gather")
}

// Copy copies into the directory to what is needed to predict with the run: the samples that its
// index lists and the files about it, the manifest last. It also copies the states that the index
// lists, so that the copy is whole. The run may be sampling.
func Copy(to string, from *Reader) error {
	for _, dir := range []string{filepath.Dir(CheckpointFile), SamplesDir} {
		if err := file.MakeDir(filepath.Join(to, dir)); err != nil {
			return errors.Wrap(err, "pollen: gather")
		}
	}
	// In this order: a process that writes lists only samples of later steps than its checkpoint.
	for _, name := range []string{CheckpointFile, index.File, MetricsFile, DiagnosticsFile, DetectorFile, CalibrationFile, SplitsFile, OutcomeFile} {
		if err := copyFile(to, from.Dir, name); err != nil && !os.IsNotExist(errors.Cause(err)) {
			return err
		}
	}
	if err := CopyModel(to, from.Dir); err != nil {
		return err
	}
	files, err := from.List()
	if err != nil {
		return err
	}
	copied, err := ReadIndex(to)
	if err != nil {
		return err
	}
	for _, f := range files {
		name := SamplesDir + "/" + filepath.Base(f.Path)
		if copied.Lines[name].Sum == "" {
			continue // it was listed after the index was copied
		}
		if err := copyFile(to, from.Dir, name); err != nil {
			return err
		}
	}
	if err := copyStates(to, from.Dir, copied); err != nil {
		return err
	}
	if from.Keep > 0 {
		for _, name := range copied.Names {
			place := filepath.FromSlash(name)
			_, err := os.Stat(filepath.Join(to, place))
			if copied.Lines[name].Sum != "" && os.IsNotExist(err) && wasDropped(filepath.Join(from.Dir, place)) {
				return from.droppedMeanwhile()
			}
		}
	}
	return copyFile(to, from.Dir, ManifestFile)
}

// copyStates copies the states that the index of a copy lists.
func copyStates(to, from string, copied *index.Index) error {
	for _, name := range copied.Names {
		if filepath.Dir(filepath.FromSlash(name)) != StatesDir || copied.Lines[name].Sum == "" {
			continue
		}
		if err := file.MakeDir(filepath.Join(to, StatesDir)); err != nil {
			return errors.Wrap(err, "pollen: gather")
		}
		if err := copyFile(to, from, name); err != nil {
			return err
		}
	}
	return nil
}
