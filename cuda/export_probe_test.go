package cuda

import (
	"encoding/binary"
	"slices"
	"unsafe"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/tensor"
)

// LaunchAlone runs one block of a kernel on a device's first GPU. The kernel's arguments are
// buffers of results with the given sizes in bytes, buffers with the given contents, and numbers.
func LaunchAlone(d tensor.Device, symbol string, threads, shared int, results []int, contents [][]byte, numbers ...int) (read [][]byte, err error) {
	g := d.(*device).gpus[0]
	err = g.do(func() error {
		f, err := g.function(symbol, shared, false)
		if err != nil {
			return err
		}
		r := &releaser{g: g}
		var values []byte
		var places []int
		var memory []address
		for _, n := range results {
			read = append(read, make([]byte, n))
		}
		for _, content := range slices.Concat(read, contents) {
			at, err := g.allocate(uint64(len(content)))
			if err != nil {
				return err
			}
			defer func() { r.check("cuMemFree_v2", g.cuMemFree_v2(at)) }()
			if err := g.write(at, content); err != nil {
				return err
			}
			memory = append(memory, at)
			places = append(places, len(values))
			values = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(values, uint64(at)), 0)
		}
		for _, n := range numbers {
			places = append(places, len(values))
			values = binary.LittleEndian.AppendUint32(values, uint32(n))
		}
		parameters := make([]unsafe.Pointer, len(places))
		for i, place := range places {
			parameters[i] = unsafe.Pointer(&values[place])
		}
		code := g.cuLaunchKernel(f, [3]uint32{1, 1, 1}, [3]uint32{uint32(threads), 1, 1}, uint32(shared), g.stream, &parameters[0])
		if err := g.check("cuLaunchKernel", code); err != nil {
			return err
		}
		if err := g.synchronize(); err != nil {
			return errors.Wrap(err, symbol)
		}
		for i := range read {
			if err := g.read(memory[i], read[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return read, err
}
