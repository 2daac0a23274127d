package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
)

// deviceNames are what --device takes. auto says what it took: there is no silent choice.
var deviceNames = []string{"auto", "cpu", "cuda", "cuda:1", "cuda:0,1"}

var precisions = []string{string(cuda.FP32), string(cuda.TF32), string(cuda.BF16)}

// checkDevice refuses what no machine has. precision is of the matrix products on GPUs, "" for fp32.
func checkDevice(name string, threads int, precision string) error {
	_, isCUDA, err := parseCUDA(name)
	switch {
	case err != nil:
		return err
	case !isCUDA && !slices.Contains(deviceNames, name):
		return usage("train: no device %q; there are %s", name, strings.Join(deviceNames, ", "))
	case threads < 0:
		return usage("train: threads is %d, wants 0 for all or more", threads)
	case threads > 0 && isCUDA:
		return usage("train: threads applies to cpu, not to %s", name)
	case precision == "":
		return nil
	case !slices.Contains(precisions, precision):
		return usage("train: no precision %q; there are %s", precision, strings.Join(precisions, ", "))
	case name == "cpu" || threads > 0:
		return usage("train: precision applies to cuda, not to cpu")
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
			return nil, true, usage("train: device %q, wants cuda, cuda:1 or cuda:0,1, each GPU once", name)
		}
		gpus = append(gpus, index)
	}
	return gpus, true, nil
}

// openDevice opens the device of that name. auto is the first GPU; the CPU where there is none, or where threads are asked for.
func openDevice(name string, threads int, precision string, c *console) (tensor.Device, error) {
	if err := checkDevice(name, threads, precision); err != nil {
		return nil, err
	}
	gpus, isCUDA, _ := parseCUDA(name)
	if isCUDA {
		return cuda.Open(cuda.Options{GPUs: gpus, Precision: cuda.Precision(precision)})
	}
	if name == "cpu" || threads > 0 {
		host := tensor.NewHost(threads)
		c.remark("device: %s", describe(host))
		return host, nil
	}
	gpu, err := cuda.Open(cuda.Options{Precision: cuda.Precision(precision)})
	switch {
	case err == nil:
		c.remark("device: %s, the first GPU", describe(gpu))
		return gpu, nil
	case precision != "":
		return nil, usage("train: precision applies to cuda, and there is no GPU: %v", err)
	}
	host := tensor.NewHost(threads)
	c.remark("device: %s; no GPU (train devices tells why)", describe(host))
	return host, nil
}

// describe names a device and what its kernels are made of.
func describe(device tensor.Device) string {
	if _, ok := device.(*tensor.Host); !ok {
		return device.Name()
	}
	return fmt.Sprintf("%s, %s kernels", device.Name(), kernel.InstructionSet())
}

func devicesCommand(c *console) *cobra.Command {
	return &cobra.Command{
		Use: "devices", Short: "list the devices that can train", Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			device := tensor.NewHost(0)
			defer device.Close()
			text := describe(device) + "\n"
			installed, err := cuda.List("")
			if err != nil {
				text += fmt.Sprintf("no CUDA device: %v\n", err)
			} else {
				for _, gpu := range installed.GPUs {
					text += gpu.String() + "\n"
				}
				text += fmt.Sprintf("driver library %s of CUDA %s\n", installed.Library, installed.Version)
			}
			_, err = fmt.Fprint(c.out, text)
			return err
		},
	}
}
