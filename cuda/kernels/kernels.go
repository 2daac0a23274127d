package kernels

//go:generate go run -C generate .

import (
	"embed"

	"github.com/pkg/errors"
	"github.com/pollen-ml/pollen/tensor"
)

//go:embed *.ptx
var files embed.FS

// File is a file of PTX.
type File struct {
	Name       string
	Version    int  // of PTX, 10 major + minor
	Capability int  // the lowest compute capability that it runs on, 10 major + minor
	Exact      bool // it runs on that one only, as sm_90a does
	Entries    []Entry
	Head       string // what comes before the entries, and belongs to each of them
	Text       string
}

// Entry is a kernel in a file.
type Entry struct {
	Name       string
	Threads    int // at most, of a block
	Parameters []Parameter
	Row        int    // bytes of a row of its one parameter, if that is rows (rows.cuh), and Parameters is nil; or 0
	Body       string // its text: after its file's head, a file of its own
}

// MostRows are the rows of a kernel that takes rows, as in rows.cuh; before them is, for each, the
// number of the block after its blocks, 4 bytes.
const (
	MostRows  = 12
	rowsBegin = 4 * MostRows
)

// Parameter is the PTX type of a kernel's parameter, without the sign, which PTX does not record.
type Parameter string

// The parameters' types. A buffer is its address and the distance to the next chain's copy.
const (
	Buffer  Parameter = "buffer"
	Integer Parameter = "32-bit integer"
	Float32 Parameter = "float32"
	Float64 Parameter = "float64"
)

// ParameterOf is the parameter that takes an argument of a launch.
func ParameterOf(a tensor.Argument) Parameter {
	return map[tensor.Kind]Parameter{
		tensor.BufferKind: Buffer, tensor.Int32Kind: Integer, tensor.Uint32Kind: Integer, tensor.Float32Kind: Float32, tensor.Float64Kind: Float64,
	}[a.Kind]
}

// Files are all files, in order of name.
func Files() ([]File, error) {
	names, err := files.ReadDir(".")
	if err != nil {
		return nil, errors.Wrap(err, "kernels")
	}
	var all []File
	for _, name := range names {
		text, err := files.ReadFile(name.Name())
		if err != nil {
			return nil, errors.Wrap(err, "kernels")
		}
		f, err := parse(name.Name(), string(text))
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}
