package kernels

//go:generate go run ./generate

import (
	_ "embed"
	"slices"
	"sync"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/cuda/kernels/bundle"
	"github.com/pollen-ml/pollen/tensor"
)

// compressed is the PTX of all sources, compressed by package bundle. As text it would make each
// program 9 MB larger.
//
//go:embed kernels.ptx.gz
var compressed []byte

// File is a file of PTX.
type File struct {
	Name       string
	Version    int  // of PTX, 10 major + minor
	Capability int  // the lowest compute capability that it runs on, 10 major + minor
	Exact      bool // it runs on that capability only, as sm_90a does
	Entries    []Entry
	Head       string // the text before the entries, which belongs to each of them
	Text       string
	Added      bool // registered by Add
}

// Entry is a kernel in a file.
type Entry struct {
	Name       string
	Threads    int // the maximum number of threads of a block
	Parameters []Parameter
	Row        int    // size in bytes of a row, if its only parameter is rows (rows.cuh) and Parameters is nil; else 0
	Body       string // its text; the file's head and one body form a file of PTX
}

// MaxRows is the maximum number of rows of a kernel that takes rows, as in rows.cuh. The rows are
// preceded by a table with 4 bytes per row: the number of the first block after the row's blocks.
const (
	MaxRows   = 12
	rowsBegin = 4 * MaxRows
)

// Parameter is the PTX type of a kernel's parameter, without its sign, which PTX does not record.
type Parameter string

// The parameters' types. A Buffer is an address and the distance to the next chain's copy.
const (
	Buffer  Parameter = "buffer"
	Integer Parameter = "32-bit integer"
	Float32 Parameter = "float32"
	Float64 Parameter = "float64"
)

// ParameterOf returns the type of the parameter that takes an argument of a launch.
func ParameterOf(a tensor.Argument) Parameter {
	return map[tensor.Kind]Parameter{
		tensor.BufferKind: Buffer, tensor.Int32Kind: Integer, tensor.Uint32Kind: Integer, tensor.Float32Kind: Float32, tensor.Float64Kind: Float64,
	}[a.Kind]
}

// Files returns all files: Pollen's in order of name, then those that were added.
func Files() ([]File, error) {
	all, err := own()
	if err != nil {
		return nil, err
	}
	added.Lock()
	defer added.Unlock()
	return slices.Concat(all, added.files), nil
}

// own returns Pollen's files.
var own = sync.OnceValues(func() ([]File, error) {
	texts, err := bundle.Read(compressed)
	if err != nil {
		return nil, errors.WithMessage(err, "kernels")
	}
	var all []File
	for _, text := range texts {
		f, err := parse(text.Name, text.Text)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
})

var added struct {
	sync.Mutex
	files []File
}

// Add registers the kernels of a file of PTX, for ops that are not part of Pollen, as
// examples/activation does. A program calls it before it opens a GPU, for example in an init
// function. The text is the output of command generate for a source; if an op has sources for
// several capabilities, each file is added. Adding a kernel that already exists is an error.
func Add(name, text string) error {
	f, err := parse(name, text)
	if err != nil {
		return err
	}
	f.Added = true
	all, err := Files()
	if err != nil {
		return err
	}
	added.Lock()
	defer added.Unlock()
	for _, other := range all {
		for _, e := range f.Entries {
			if slices.ContainsFunc(other.Entries, func(o Entry) bool { return o.Name == e.Name }) &&
				(!other.Added || other.Capability == f.Capability) {
				return errors.Errorf("kernels: %s: %s has a kernel %s already", name, other.Name, e.Name)
			}
		}
	}
	added.files = append(added.files, f)
	return nil
}
