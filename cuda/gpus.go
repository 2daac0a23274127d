package cuda

import (
	"bytes"
	"fmt"

	"github.com/pkg/errors"
)

// Info describes a GPU.
type Info struct {
	Index           int // the driver's number for it
	Name            string
	Major, Minor    int // of its compute capability
	Multiprocessors int
	Memory          uint64 // bytes
}

func (i Info) capability() int { return 10*i.Major + i.Minor }

// String returns "cuda:0: NVIDIA H200, compute capability 9.0, 132 multiprocessors, 139.7 GiB". For
// a GPU that Open refuses it adds "(needs 7.0)".
func (i Info) String() string {
	needs := ""
	if i.capability() < minCapability {
		needs = " (needs 7.0)"
	}
	return fmt.Sprintf("cuda:%d: %s, compute capability %d.%d%s, %d multiprocessors, %s",
		i.Index, i.Name, i.Major, i.Minor, needs, i.Multiprocessors, size(i.Memory))
}

// Installed describes a driver and its GPUs.
type Installed struct {
	Library string // the file that was opened
	Version string // the newest CUDA that the driver supports, such as "13.0"
	GPUs    []Info
}

// List opens the system's driver library and lists its GPUs. It returns an error if there is no
// driver or no GPU.
func List() (*Installed, error) {
	l, err := openLibrary("")
	if err != nil {
		return nil, err
	}
	installed := &Installed{Library: l.path, Version: versionString(l.version)}
	count, err := l.count()
	if err != nil {
		return nil, err
	}
	for index := range count {
		info, _, err := l.gpuInfo(index)
		if err != nil {
			return nil, err
		}
		installed.GPUs = append(installed.GPUs, info)
	}
	return installed, nil
}

// count returns the number of GPUs, or an error if there is none.
func (l *library) count() (int, error) {
	var count int32
	if err := l.check("cuDeviceGetCount", l.cuDeviceGetCount(&count)); err != nil {
		return 0, err
	}
	if count == 0 {
		return 0, l.noGPU()
	}
	return int(count), nil
}

// gpuInfo returns a GPU's properties and the driver's CUdevice for it.
func (l *library) gpuInfo(index int) (Info, int32, error) {
	info := Info{Index: index}
	count, err := l.count()
	if err != nil {
		return info, 0, err
	}
	if index < 0 || index >= count {
		return info, 0, errors.Errorf("cuda: no GPU %d, the driver has %d, numbered from 0", index, count)
	}
	var device int32
	if err := l.check("cuDeviceGet", l.cuDeviceGet(&device, int32(index))); err != nil {
		return info, 0, err
	}
	name := make([]byte, 256)
	if err := l.check("cuDeviceGetName", l.cuDeviceGetName(&name[0], int32(len(name)), device)); err != nil {
		return info, 0, err
	}
	text, _, _ := bytes.Cut(name, []byte{0})
	info.Name = string(text)
	if err := l.check("cuDeviceTotalMem_v2", l.cuDeviceTotalMem_v2(&info.Memory, device)); err != nil {
		return info, 0, err
	}
	for _, wanted := range []struct {
		attribute attribute
		value     *int
	}{{capabilityMajor, &info.Major}, {capabilityMinor, &info.Minor}, {multiprocessorCount, &info.Multiprocessors}} {
		v, err := l.attribute(wanted.attribute, device)
		if err != nil {
			return info, 0, err
		}
		*wanted.value = int(v)
	}
	return info, device, nil
}

func (l *library) attribute(which attribute, device int32) (int32, error) {
	var value int32
	err := l.check("cuDeviceGetAttribute", l.cuDeviceGetAttribute(&value, which, device))
	return value, errors.Wrapf(err, "attribute %d", which)
}

// size formats a number of bytes, such as "139.7 GiB".
func size(bytes uint64) string {
	switch {
	case bytes >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
	case bytes >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	default:
		return fmt.Sprintf("%.1f KiB", float64(bytes)/(1<<10))
	}
}

// minCapability is the oldest compute capability that the kernels support: Volta.
const minCapability = 70
