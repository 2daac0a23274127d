package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
)

// deviceNames are what --device takes. auto says what it took: there is no silent choice.
var deviceNames = []string{"auto", "cpu"}

func checkDevice(name string, threads int) error {
	switch {
	case name == "cuda":
		return usage("train: device cuda: this build has no CUDA device; there are %s", strings.Join(deviceNames, ", "))
	case !slices.Contains(deviceNames, name):
		return usage("train: no device %q; there are %s", name, strings.Join(deviceNames, ", "))
	case threads < 0:
		return usage("train: threads is %d, wants 0 for all or more", threads)
	}
	return nil
}

func openDevice(name string, threads int, c *console) (tensor.Device, error) {
	if err := checkDevice(name, threads); err != nil {
		return nil, err
	}
	device := tensor.NewHost(threads)
	if name == "auto" {
		c.remark("device: %s", describe(device))
	}
	return device, nil
}

// describe names a device and what its kernels are made of.
func describe(device tensor.Device) string {
	return fmt.Sprintf("%s, %s kernels", device.Name(), kernel.InstructionSet())
}

func devicesCommand(c *console) *cobra.Command {
	return &cobra.Command{
		Use: "devices", Short: "list the devices that can train", Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			device := tensor.NewHost(0)
			defer device.Close()
			_, err := fmt.Fprintf(c.out, "%s\nThis build has no CUDA device.\n", describe(device))
			return err
		},
	}
}
