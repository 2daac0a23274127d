package datasets

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/pkg/errors"
)

// EnvironmentFolder names the environment variable with the user's data
// folder, looked into after Options.Folder.
const EnvironmentFolder = "POLLEN_DATA"

// A Split is the part of a data set meant for one use.
type Split int

// The splits, as the data sets' authors made them.
const (
	Train Split = iota
	Test
)

// String returns "train" or "test".
func (s Split) String() string {
	switch s {
	case Train:
		return "train"
	case Test:
		return "test"
	default:
		return "unknown"
	}
}

// Options tell Load and List where to look. The zero value is right for most
// programs.
type Options struct {
	// Folder is the user's data folder: files are looked for in a folder of
	// the data set's name inside it, then in itself. "" is none.
	Folder string

	// Cache is where downloads are kept, in a folder for each data set. "" is
	// the folder "pollen" in the user's cache folder.
	Cache string

	// Offline forbids downloads.
	Offline bool

	// Progress, if not nil, is called during a download with the file's name
	// and how many of its bytes have arrived.
	Progress func(file string, done, total int64)

	// Context ends a download when it is done. nil is context.Background().
	Context context.Context
}

func (o Options) context() context.Context {
	if o.Context == nil {
		return context.Background()
	}
	return o.Context
}

// cache returns the folder for downloads, or an error if the machine has none.
func (o Options) cache() (string, error) {
	if o.Cache != "" {
		return o.Cache, nil
	}
	folder, err := os.UserCacheDir()
	if err != nil {
		return "", errors.Wrap(err, "no cache folder")
	}
	return filepath.Join(folder, "pollen"), nil
}

// A Description says what a data set is and where Load would take it from.
type Description struct {
	Name       string
	What       string
	Images     [2]int // by Split; 0 where it depends on the user's copy
	Channels   int
	Height     int
	Width      int
	ClassNames []string

	// Places tells by Split the folder that has the files now, "built in",
	// the address of a download, or "" where the user has to get the files.
	Places [2]string

	// Advice tells how to get the files where Load cannot.
	Advice string
}

// Names returns the names that Load knows.
func Names() []string {
	var names []string
	for _, source := range sources() {
		names = append(names, source.name)
	}
	return names
}

// List describes the data sets that Load knows. It looks for their files but
// neither reads nor downloads any.
func List(options Options) []Description {
	var list []Description
	for _, source := range sources() {
		list = append(list, Description{
			Name: source.name, What: source.what, Images: source.images,
			Channels: 1, Height: imageSide, Width: imageSide,
			ClassNames: source.classNames, Advice: source.advice,
			Places: [2]string{source.whereabouts(Train, options), source.whereabouts(Test, options)},
		})
	}
	return list
}

// Load returns one split of the data set of the given name, verified.
//
// Files are looked for in Options.Folder, in the folder that the environment
// variable POLLEN_DATA names, where the data set's own distribution puts them
// (a Go module, a Debian package), and in the cache; then they are downloaded.
// The first place that has them is used, and a file there that is not what it
// should be is an error. If no place has them, the error names them all.
func Load(name string, split Split, options Options) (*Dataset, error) {
	if split != Train && split != Test {
		return nil, errors.Errorf("datasets: %s: split %d, want Train or Test", name, int(split))
	}
	for _, source := range sources() {
		if source.name != name {
			continue
		}
		dataset, err := source.load(split, options)
		if err != nil {
			return nil, err
		}
		return dataset, dataset.Validate()
	}
	return nil, errors.Errorf("datasets: no data set %q, want one of %s", name, strings.Join(Names(), ", "))
}
