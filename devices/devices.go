package devices

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/tensor"
)

// Names returns the forms of names that Open accepts.
func Names() []string { return []string{"auto", "cpu", "cuda", "cuda:1", "cuda:0,1"} }

// Precisions returns the precisions that matrix products on GPUs can have.
func Precisions() []string {
	return []string{string(cuda.FP32), string(cuda.TF32), string(cuda.BF16)}
}

// Options name a device and set how it computes.
type Options struct {
	// Name is one of the forms of Names, such as "cuda:1". "" is auto: the first GPU, or the
	// CPU if there is none or Threads is set.
	Name string
	// Threads is the number of the CPU's threads; 0 is all. Results do not depend on it.
	Threads int
	// Precision is one of Precisions, for the operands of matrix products on GPUs; "" is fp32.
	// Others are faster and less exact.
	Precision string
}

// Validate returns a bayes.InvalidError for options that are not valid on any machine.
func (o Options) Validate() error {
	_, isCUDA, err := parseCUDA(o.Name)
	switch {
	case err != nil:
		return err
	case !isCUDA && o.Name != "" && !slices.Contains(Names(), o.Name):
		return invalid("no device %q; there are %s", o.Name, strings.Join(Names(), ", "))
	case o.Threads < 0:
		return invalid("threads must be at least 1, or 0 for all, got %d", o.Threads)
	case o.Threads > 0 && isCUDA:
		return invalid("threads applies to cpu, not to %s", o.Name)
	case o.Precision == "":
		return nil
	case !slices.Contains(Precisions(), o.Precision):
		return invalid("no precision %q; there are %s", o.Precision, strings.Join(Precisions(), ", "))
	case o.Name == "cpu" || o.Threads > 0:
		return invalid("precision applies to cuda, not to cpu")
	}
	return nil
}

// parseCUDA reads the numbers of GPUs from "cuda", "cuda:1" or "cuda:0,1". gpus is nil for "cuda",
// the first GPU.
func parseCUDA(name string) (gpus []int, isCUDA bool, err error) {
	list, isCUDA := strings.CutPrefix(name, "cuda:")
	if !isCUDA {
		return nil, name == "cuda", nil
	}
	for _, item := range strings.Split(list, ",") {
		index, err := strconv.Atoi(item)
		if err != nil || index < 0 || slices.Contains(gpus, index) {
			return nil, true, invalid("device must be cuda, cuda:1 or cuda:0,1, with each GPU once, got %q", name)
		}
		gpus = append(gpus, index)
	}
	return gpus, true, nil
}

// compiling ends the note about a GPU: the first program that uses a kernel waits for the driver's
// compiler, which takes seconds.
const compiling = "; its driver compiles each kernel once, at its first use"

// Open opens a device, which the caller closes. The note reports what was opened and, for "auto",
// why.
func Open(o Options) (device tensor.Device, note string, err error) {
	if err := o.Validate(); err != nil {
		return nil, "", err
	}
	gpus, isCUDA, _ := parseCUDA(o.Name)
	if isCUDA {
		device, err := cuda.Open(cuda.Options{GPUs: gpus, Precision: cuda.Precision(o.Precision)})
		if err != nil {
			return nil, "", err
		}
		return device, tensor.Describe(device) + compiling, nil
	}
	if o.Name == "cpu" || o.Threads > 0 {
		host := tensor.NewHost(o.Threads)
		return host, tensor.Describe(host), nil
	}
	// auto: a machine without a GPU is no error, unless a precision asks for one.
	gpu, err := cuda.Open(cuda.Options{Precision: cuda.Precision(o.Precision)})
	switch {
	case err == nil:
		return gpu, tensor.Describe(gpu) + ", the first GPU" + compiling, nil
	case o.Precision != "":
		return nil, "", invalid("precision applies to cuda, and there is no GPU: %v", err)
	}
	host := tensor.NewHost(o.Threads)
	return host, tensor.Describe(host) + "; no GPU (pollen devices says why)", nil
}

func invalid(format string, values ...any) error {
	return &bayes.InvalidError{Cause: errors.Errorf("pollen: "+format, values...)}
}
