package tensor

import (
	"fmt"

	"github.com/pollen-ml/pollen/tensor/kernel"
)

// Describe returns the name of a device and its instruction set, if it is the host.
func Describe(device Device) string {
	if _, ok := device.(*Host); !ok {
		return device.Name()
	}
	return fmt.Sprintf("%s, %s kernels", device.Name(), kernel.InstructionSet())
}
