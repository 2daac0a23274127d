package pollen

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
)

// DeviceNames are the forms of names that OpenDevice takes.
func DeviceNames() []string { return []string{"auto", "cpu", "cuda", "cuda:1", "cuda:0,1"} }

// Precisions are the operands that matrix products on GPUs can have.
func Precisions() []string {
	return []string{string(cuda.FP32), string(cuda.TF32), string(cuda.BF16)}
}

// DeviceOptions name a device and say how it computes.
type DeviceOptions struct {
	Name      string // of DeviceNames; "" is auto: the first GPU, or the CPU if none or with Threads
	Threads   int    // of the CPU; 0 is all
	Precision string // of Precisions, on GPUs; "" is fp32
}

// Validate refuses what no machine has.
func (o DeviceOptions) Validate() error {
	_, isCUDA, err := parseCUDA(o.Name)
	switch {
	case err != nil:
		return err
	case !isCUDA && o.Name != "" && !slices.Contains(DeviceNames(), o.Name):
		return invalid("no device %q; there are %s", o.Name, strings.Join(DeviceNames(), ", "))
	case o.Threads < 0:
		return invalid("threads is %d, wants 0 for all or more", o.Threads)
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

// parseCUDA reads "cuda", "cuda:1" or "cuda:0,1" as numbers of GPUs.
func parseCUDA(name string) (gpus []int, isCUDA bool, err error) {
	list, isCUDA := strings.CutPrefix(name, "cuda:")
	if !isCUDA {
		return nil, name == "cuda", nil
	}
	for _, item := range strings.Split(list, ",") {
		index, err := strconv.Atoi(item)
		if err != nil || index < 0 || slices.Contains(gpus, index) {
			return nil, true, invalid("device %q, wants cuda, cuda:1 or cuda:0,1, each GPU once", name)
		}
		gpus = append(gpus, index)
	}
	return gpus, true, nil
}

// compiling ends the note of a GPU: the first program that has some kernels waits for the driver's
// compiler, for seconds.
const compiling = "; its driver compiles each kernel once, at its first use"

// OpenDevice opens a device for WithDevice. The choice of "auto" is never silent: the note says
// what was chosen, and why.
func OpenDevice(o DeviceOptions) (device tensor.Device, note string, err error) {
	if err := o.Validate(); err != nil {
		return nil, "", err
	}
	gpus, isCUDA, _ := parseCUDA(o.Name)
	if isCUDA {
		device, err := cuda.Open(cuda.Options{GPUs: gpus, Precision: cuda.Precision(o.Precision)})
		if err != nil {
			return nil, "", err
		}
		return device, Describe(device) + compiling, nil
	}
	if o.Name == "cpu" || o.Threads > 0 {
		host := tensor.NewHost(o.Threads)
		return host, Describe(host), nil
	}
	gpu, err := cuda.Open(cuda.Options{Precision: cuda.Precision(o.Precision)})
	switch {
	case err == nil:
		return gpu, Describe(gpu) + ", the first GPU" + compiling, nil
	case o.Precision != "":
		return nil, "", invalid("precision applies to cuda, and there is no GPU: %v", err)
	}
	host := tensor.NewHost(o.Threads)
	return host, Describe(host) + "; no GPU (pollen devices says why)", nil
}

// Describe names a device and what its kernels are made of.
func Describe(device tensor.Device) string {
	if _, ok := device.(*tensor.Host); !ok {
		return device.Name()
	}
	return fmt.Sprintf("%s, %s kernels", device.Name(), kernel.InstructionSet())
}
