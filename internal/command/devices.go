package command

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/devices"
	"github.com/pollen-ml/pollen/internal/config"
	"github.com/pollen-ml/pollen/tensor"
)

// deviceFlags select a device.
type deviceFlags struct{ devices.Options }

func (d *deviceFlags) bind(f *pflag.FlagSet) { config.BindDevice(f, &d.Options) }

// asNoted selects the device that is noted for a run or comparison, unless a flag selects another.
func (d *deviceFlags) asNoted(notes map[string]string, given *pflag.FlagSet) {
	if !given.Changed("device") {
		d.Name = notes["device"]
		if !given.Changed("precision") {
			d.Precision = notes["precision"]
		}
	}
}

// open opens the device and reports which one auto chose.
func (d deviceFlags) open(c *console) (tensor.Device, error) {
	device, note, err := devices.Open(d.Options)
	if err == nil {
		c.remark("device: %s", note)
	}
	return device, err
}

func devicesCommand(c *console) *cobra.Command {
	return &cobra.Command{
		Use: "devices", Short: "List devices", Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			device := tensor.NewHost(0)
			defer device.Close()
			text := tensor.Describe(device) + "\n"
			installed, err := cuda.List()
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
