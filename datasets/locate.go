package datasets

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pkg/errors"
)

// load finds and reads a split.
func (s source) load(split Split, options Options) (*Dataset, error) {
	if s.render != nil {
		return s.render(split)
	}
	var tried []string
	for _, dir := range s.places(options) {
		dataset, err := s.read(dir, split)
		if absent := absentError(""); !errors.As(err, &absent) {
			return dataset, err
		}
		tried = append(tried, err.Error())
	}
	fetchers := []func(Split, Options) (string, error){s.download}
	if s.module != nil {
		fetchers = []func(Split, Options) (string, error){s.fetchModule, s.download}
	}
	for _, fetch := range fetchers {
		dir, err := fetch(split, options)
		if err == nil {
			return s.read(dir, split)
		}
		if options.context().Err() != nil {
			return nil, errors.Wrapf(err, "datasets: %s", s.name)
		}
		tried = append(tried, err.Error())
	}
	return nil, errors.Errorf("datasets: %s: must have %s images, found none. Tried:\n  %s\n%s",
		s.name, split, strings.Join(tried, "\n  "), s.advice)
}

// places lists the directories to search, in order.
func (s source) places(options Options) []string {
	var places []string
	add := func(dir string) {
		if !slices.Contains(places, dir) {
			places = append(places, dir)
		}
	}
	for _, root := range []string{options.Dir, os.Getenv(EnvironmentDir)} {
		if root == "" {
			continue
		}
		add(filepath.Join(root, s.name))
		for _, sub := range s.subfolders {
			add(filepath.Join(root, filepath.FromSlash(sub)))
		}
		add(filepath.Clean(root))
	}
	if s.dirs != nil {
		for _, dir := range s.dirs() {
			add(dir)
		}
	}
	if cache, err := options.cache(); err == nil {
		add(filepath.Join(cache, s.name))
	}
	return places
}

// whereabouts returns where load would read a split from; see Description.Places.
func (s source) whereabouts(split Split, options Options) string {
	if s.render != nil {
		return "built in"
	}
	for _, dir := range s.places(options) {
		if s.holds(dir, split) {
			return dir
		}
	}
	switch {
	case options.Offline:
		return ""
	case s.module != nil:
		return "Go module " + s.module.String()
	case s.downloadable(split):
		return s.mirrors[0]
	default:
		return ""
	}
}

// holds reports whether dir has the files of a split, by name, and the images are not known to
// belong to another data set.
func (s source) holds(dir string, split Split) bool {
	wanted := s.files[split]
	images := locate(dir, wanted.images.name)
	if images == "" || locate(dir, wanted.labels.name) == "" {
		return locateLetters(dir, s.letterDirs[split]) != ""
	}
	hash, err := hashOf(images)
	if err != nil {
		return true // reading it returns the error
	}
	owner := ownerOf(hash)
	return owner == "" || owner == s.name
}

// downloadable reports whether a split can be downloaded and verified.
func (s source) downloadable(split Split) bool {
	return len(s.mirrors) > 0 && s.files[split].images.packed != "" && s.files[split].labels.packed != ""
}

// fetchModule fetches the Go module that has the files and returns their directory.
func (s source) fetchModule(_ Split, options Options) (string, error) {
	return s.module.fetch(options.context(), options.Offline)
}

// download downloads the two files of a split into the cache and returns their directory.
func (s source) download(split Split, options Options) (string, error) {
	if !s.downloadable(split) {
		return "", errors.New("download: no known address")
	}
	if options.Offline {
		return "", errors.New("download: disabled by Offline")
	}
	cache, err := options.cache()
	if err != nil {
		return "", errors.Wrap(err, "download")
	}
	dir := filepath.Join(cache, s.name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", errors.Wrap(err, "download")
	}
	for _, wanted := range []file{s.files[split].images, s.files[split].labels} {
		if err := newDownloader(options.OnProgress).fetch(options.context(), s.mirrors, wanted, dir); err != nil {
			return "", err
		}
	}
	return dir, nil
}
