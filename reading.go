package pollen

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/index"
	"github.com/pollen-ml/pollen/samples"
)

// leftOut remembers which files of a run were left out.
type leftOut struct {
	mu    sync.Mutex
	files []string
}

// LeftOut are the damaged and missing samples that were left out so far, see WithoutDamaged, and
// those that the run itself went on without; by their paths.
func (r *Run) LeftOut() []string {
	r.left.mu.Lock()
	defer r.left.mu.Unlock()
	return slices.Clone(r.left.files)
}

// leave remembers a file that is left out, and says so once.
func (r *Run) leave(path string, why error) {
	r.left.mu.Lock()
	known := slices.Contains(r.left.files, path)
	if !known {
		r.left.files = append(r.left.files, path)
	}
	r.left.mu.Unlock()
	if !known {
		r.remark(fmt.Sprintf("left out %s: %v", path, why))
	}
}

// without leaves a damaged file out, if that was asked for; otherwise it is an error.
func (r *Run) without(path string, cause error) error {
	if r.manifest.Spec.Keep > 0 && wasDropped(path) {
		return r.droppedMeanwhile()
	}
	if !r.withoutDamaged {
		return damaged(path, cause)
	}
	r.leave(path, cause)
	return nil
}

// sampleFile is a sample of a run.
type sampleFile struct{ path, sum string } // sum is "" where the run has no index

// read reads the sample, which must be the one that the index lists.
func (f sampleFile) read() (samples.Sample, error) {
	s, sum, err := samples.ReadWithChecksum(f.path)
	if err == nil && f.sum != "" && sum != f.sum {
		err = errors.Errorf("it is another file than the one that %s lists", index.File)
	}
	return s, err
}

// Samples are the paths of the sample files, by chain and then by step; none if the run has not
// drawn any yet. A sample that the run's index lists and that is not there is Damaged, and so is a
// file that it should list and does not.
func (r *Run) Samples() ([]string, error) {
	files, err := r.listSamples()
	paths := make([]string, len(files))
	for i, f := range files {
		paths[i] = f.path
	}
	return paths, err
}

func (r *Run) listSamples() ([]sampleFile, error) {
	parts, err := r.Parts()
	if err != nil {
		return nil, err
	}
	if parts == nil {
		return r.listOwn()
	}
	var all []sampleFile
	for _, part := range parts {
		files, err := part.listOwn()
		if err != nil {
			return nil, err
		}
		all = append(all, files...)
	}
	return all, nil
}

// listOwn are the samples in the run's own folder.
func (r *Run) listOwn() ([]sampleFile, error) {
	dir := filepath.Join(r.dir, samplesDir)
	bank := samples.NewStore(dir)
	if r.manifest.Format < sealedFormat {
		paths, err := bank.Files()
		return withoutSums(paths), err
	}
	// In this order: what a process lists while we read has more steps than the checkpoint.
	steps := checkpointSteps(r.dir)
	x, err := readIndex(r.dir)
	if err != nil {
		if err := r.without(filepath.Join(r.dir, index.File), errors.Cause(err)); err != nil {
			return nil, err
		}
	}
	paths, err := bank.Files()
	if err != nil {
		return nil, damaged(dir, err)
	}
	if x == nil {
		return withoutSums(paths), nil
	}
	files, err := r.takeListed(x, paths, steps)
	if err != nil {
		return nil, err
	}
	went, err := r.checkMissing(x)
	if went {
		return r.listOwn()
	}
	return files, err
}

// withoutSums are files of which no index says what is in them.
func withoutSums(paths []string) []sampleFile {
	files := make([]sampleFile, len(paths))
	for i, path := range paths {
		files[i].path = path
	}
	return files
}

// takeListed are the files that the index lists, whose lines it takes out of the index. Those of
// steps after that many are left out.
func (r *Run) takeListed(x *index.Index, paths []string, steps int) (files []sampleFile, err error) {
	unlisted := 0
	for _, path := range paths {
		name := samplesDir + "/" + filepath.Base(path)
		line := x.Lines[name]
		delete(x.Lines, name)
		switch {
		case line.Sum != "":
			files = append(files, sampleFile{path, line.Sum})
		case line.Dropped:
		case laterThan(filepath.Base(path), steps):
			unlisted++
		default:
			if err := r.without(path, errors.New(index.File+" does not list it: it is not of this run")); err != nil {
				return nil, err
			}
		}
	}
	if unlisted > 0 {
		r.remark(fmt.Sprintf("%s: %d samples are being written, or were when the process ended: left out", r.dir, unlisted))
	}
	return files, nil
}

// checkMissing goes through the samples that are left in the index, since there are no such files.
// It reports whether one went after the index was read.
func (r *Run) checkMissing(x *index.Index) (went bool, err error) {
	for _, name := range x.Names {
		line, missing := x.Lines[name]
		path := filepath.Join(r.dir, filepath.FromSlash(name))
		switch {
		case filepath.Dir(filepath.FromSlash(name)) != samplesDir || !missing || line.Dropped:
		case line.Lost == "" && r.manifest.Spec.Keep > 0 && wasDropped(path):
			return true, nil
		case line.Lost != "":
			r.leave(path, errors.New("the run went on without it: "+line.Lost))
		default:
			if err := r.without(path, errors.New("there is no such file, and "+index.File+" lists it")); err != nil {
				return false, err
			}
		}
	}
	return false, nil
}

// intact are the files that are not damaged, where the run is to go on without those that are.
func (r *Run) intact(files []sampleFile) ([]sampleFile, error) {
	if !r.withoutDamaged {
		return files, nil
	}
	var left []sampleFile
	for _, f := range files {
		if _, err := f.read(); err == nil {
			left = append(left, f)
		} else {
			r.leave(f.path, err)
		}
	}
	if len(left) == 0 {
		return nil, errors.Errorf("pollen: all samples of %s are damaged", r.dir)
	}
	return left, nil
}

// laterThan reports whether a name is that of a sample of a later step.
func laterThan(name string, steps int) bool {
	_, step, err := samples.ParseFileName(name)
	return err == nil && step > steps
}

// readListed reads a sealed file of the run; one that the index lists must be there.
func (r *Run) readListed(name string, value any) error {
	err := readJSON(r.dir, name, value, r.manifest.Format)
	if os.IsNotExist(errors.Cause(err)) && r.manifest.Format >= sealedFormat {
		if x, reading := readIndex(r.dir); reading == nil && x.Lines[name].Sum != "" {
			return damaged(filepath.Join(r.dir, name), errors.New("there is no such file any more, and "+index.File+" lists it"))
		}
	}
	return err
}

// readIndex reads a run's index, which is Damaged otherwise.
func readIndex(dir string) (*index.Index, error) {
	x, err := index.Read(dir)
	if err != nil {
		return nil, damaged(filepath.Join(dir, index.File), err)
	}
	return x, nil
}

// lineOf is the index's line for a sealed text file.
func lineOf(dir, name string) (index.Line, error) {
	line, err := index.Sealed(dir, name)
	if err != nil {
		return line, damaged(filepath.Join(dir, name), err)
	}
	return line, nil
}

// wasDropped reports whether a sample's file is not there, or goes, because its run keeps no more:
// a process that samples may have dropped it since the index was read.
func wasDropped(path string) bool {
	bank, name := filepath.Split(path)
	x, err := readIndex(filepath.Dir(filepath.Clean(bank)))
	return err == nil && x.Lines[samplesDir+"/"+name].Dropped
}

// droppedMeanwhile is the error of reading samples while a process drops some: the average of what
// is left and what was read before would count some steps twice.
func (r *Run) droppedMeanwhile() error {
	return errors.Errorf("pollen: %s dropped samples while they were read, to keep no more than %d of a chain: try again", r.dir, r.manifest.Spec.Keep)
}
