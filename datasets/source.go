package datasets

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pkg/errors"
)

// imageSide is the height and width of the images of every data set here.
const imageSide = 28

// A source is one row of the table of data sets.
type source struct {
	name, what string
	images     [2]int // by Split; 0: not fixed
	classNames []string

	// mean and deviation of the training set; 0: computed from the images.
	mean, deviation float64

	// render makes the data set where it is made and not read; the fields
	// below are then empty.
	render func(Split) (*Dataset, error)

	files      [2]pair                 // by Split
	subfolders []string                // of the user's folder, besides the name
	folders    func() []string         // where its own distribution puts the files
	images28   func(string) pngFolders // where else in a folder images may lie; nil: nowhere
	module     *goModule               // which holds the files and can be had from a proxy; nil: none
	mirrors    []string                // base addresses of the files; "" hashes are not downloaded
	advice     string
}

// A pair is the two files of a split.
type pair struct{ images, labels file }

// A file is one published IDX file.
type file struct {
	name    string // without .gz
	packed  string // SHA-256 of the published .gz file; "": not downloaded
	size    int64  // of the published .gz file
	content string // SHA-256 of the unpacked file, however it was packed; "": any
}

// sources returns the table of data sets.
func sources() []source {
	return []source{mnist(), fashionMNIST(), notMNIST(), glyphs()}
}

// load finds and reads one split.
func (s source) load(split Split, options Options) (*Dataset, error) {
	if s.render != nil {
		return s.render(split)
	}
	var tried []string
	attempt := func(folder string) (*Dataset, error) {
		dataset, err := s.read(folder, split)
		var absent absentError
		if errors.As(err, &absent) {
			tried = append(tried, absent.Error())
			return nil, nil
		}
		return dataset, err
	}
	for _, folder := range s.places(options) {
		if dataset, err := attempt(folder); dataset != nil || err != nil {
			return dataset, err
		}
	}
	if s.module != nil {
		folder, err := s.module.download(options.context(), options.Offline)
		if err != nil {
			tried = append(tried, err.Error())
		} else if dataset, err := attempt(folder); dataset != nil || err != nil {
			return dataset, err
		}
	}
	folder, err := s.download(split, options)
	if err == nil {
		return s.read(folder, split)
	}
	tried = append(tried, err.Error())
	message := fmt.Sprintf("datasets: %s: the %s files were not found. Tried:\n  %s", s.name, split, strings.Join(tried, "\n  "))
	if s.advice != "" {
		message += "\n" + s.advice
	}
	return nil, errors.New(message)
}

// places lists the folders to look into, in order.
func (s source) places(options Options) []string {
	var places []string
	for _, root := range []string{options.Folder, os.Getenv(EnvironmentFolder)} {
		if root == "" {
			continue
		}
		for _, sub := range append([]string{s.name}, s.subfolders...) {
			places = append(places, filepath.Join(root, filepath.FromSlash(sub)))
		}
		places = append(places, filepath.Clean(root))
	}
	if s.folders != nil {
		places = append(places, s.folders()...)
	}
	if cache, err := options.cache(); err == nil {
		places = append(places, filepath.Join(cache, s.name))
	}
	var distinct []string
	for _, place := range places {
		if !slices.Contains(distinct, place) {
			distinct = append(distinct, place)
		}
	}
	return distinct
}

// whereabouts says where load would take a split from; see Description.
func (s source) whereabouts(split Split, options Options) string {
	if s.render != nil {
		return "built in"
	}
	for _, folder := range s.places(options) {
		if s.holds(folder, split) {
			return folder
		}
	}
	switch {
	case options.Offline:
		return ""
	case s.module != nil:
		return s.module.String()
	case len(s.mirrors) > 0 && s.files[split].images.packed != "":
		return s.mirrors[0]
	default:
		return ""
	}
}

// holds reports whether a folder has the files of a split, by their names.
func (s source) holds(folder string, split Split) bool {
	files := s.files[split]
	if locate(folder, files.images) != "" && locate(folder, files.labels) != "" {
		return true
	}
	return s.images28 != nil && s.images28(folder).find(split) != ""
}
