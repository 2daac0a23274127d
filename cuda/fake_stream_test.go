//go:build linux

package cuda

import (
	"strings"
	"unsafe"
)

func (d *fakeDriver) cuMemAllocHost_v2(memory *unsafe.Pointer, bytes uint64) result {
	return d.do("cuMemAllocHost_v2", func() result {
		pinned := make([]byte, bytes)
		*memory = unsafe.Pointer(&pinned[0])
		d.pinned[*memory] = fakePinned{pinned, d.gpuOf()}
		return success
	})
}

func (d *fakeDriver) cuMemFreeHost(memory unsafe.Pointer) result {
	return d.do("cuMemFreeHost", func() result {
		if d.pinned[memory].bytes == nil {
			return invalidValue
		}
		delete(d.pinned, memory)
		return success
	})
}

// enqueue puts work on a stream.
func (d *fakeDriver) enqueue(call string, stream handle, work func()) result {
	return d.do(call, func() result {
		s := d.streams[stream]
		if s == nil || s.gpu != d.gpuOf() {
			return invalidHandle
		}
		s.queue = append(s.queue, work)
		return success
	})
}

func (d *fakeDriver) cuMemcpyHtoDAsync_v2(to address, from unsafe.Pointer, bytes uint64, stream handle) result {
	return d.enqueue("cuMemcpyHtoDAsync_v2", stream, func() { copy(d.at(to, bytes), unsafe.Slice((*byte)(from), bytes)) })
}

func (d *fakeDriver) cuMemcpyDtoHAsync_v2(to unsafe.Pointer, from address, bytes uint64, stream handle) result {
	return d.enqueue("cuMemcpyDtoHAsync_v2", stream, func() { copy(unsafe.Slice((*byte)(to), bytes), d.at(from, bytes)) })
}

func (d *fakeDriver) cuMemcpyDtoDAsync_v2(to, from address, bytes uint64, stream handle) result {
	return d.enqueue("cuMemcpyDtoDAsync_v2", stream, func() { copy(d.at(to, bytes), d.at(from, bytes)) })
}

func (d *fakeDriver) cuMemsetD8Async(memory address, value uint8, bytes uint64, stream handle) result {
	return d.enqueue("cuMemsetD8Async", stream, func() {
		at := d.at(memory, bytes)
		for i := range at {
			at[i] = value
		}
	})
}

func (d *fakeDriver) cuStreamCreate(stream *handle, _ uint32) result {
	return d.do("cuStreamCreate", func() result {
		*stream = d.fresh()
		d.streams[*stream] = &fakeStream{gpu: d.gpuOf()}
		return success
	})
}

func (d *fakeDriver) cuStreamDestroy_v2(stream handle) result {
	return d.do("cuStreamDestroy_v2", func() result {
		if d.streams[stream] == nil {
			return invalidHandle
		}
		delete(d.streams, stream)
		return success
	})
}

func (d *fakeDriver) cuStreamSynchronize(stream handle) result {
	return d.do("cuStreamSynchronize", func() result {
		s := d.streams[stream]
		if s == nil {
			return invalidHandle
		}
		d.waits++
		for _, work := range s.queue {
			work()
		}
		s.queue = nil
		return d.lost[d.gpuOf()]
	})
}

func (d *fakeDriver) cuModuleLoadDataEx(module *handle, image *byte, count uint32, options *jitOption, values *uintptr) result {
	return d.do("cuModuleLoadDataEx", func() result {
		if strings.Contains(goString(unsafe.Pointer(image)), "broken") {
			for i, o := range unsafe.Slice(options, count) {
				if o == errorLog {
					copy(unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(unsafe.Add(unsafe.Pointer(values), i*8)))), 100), "line 1: no such instruction\x00")
				}
			}
			return 218
		}
		*module = d.fresh()
		d.modules[*module] = true
		return success
	})
}

func (d *fakeDriver) cuModuleGetFunction(function *handle, module handle, name *byte) result {
	return d.do("cuModuleGetFunction", func() result {
		k, ok := d.kernels[goString(unsafe.Pointer(name))]
		if !ok || !d.modules[module] {
			return notFound
		}
		*function = k.handle
		return success
	})
}

func (d *fakeDriver) cuModuleUnload(module handle) result {
	return d.do("cuModuleUnload", func() result {
		if !d.modules[module] {
			return invalidHandle
		}
		delete(d.modules, module)
		return success
	})
}

func (d *fakeDriver) kernel(function handle) (string, fakeKernel) {
	for name, k := range d.kernels {
		if k.handle == function {
			return name, k
		}
	}
	return "", fakeKernel{}
}

func (d *fakeDriver) cuFuncSetAttribute(function handle, _ int32, value int32) result {
	return d.do("cuFuncSetAttribute", func() result {
		name, _ := d.kernel(function)
		d.granted[name] = value
		return success
	})
}

func (d *fakeDriver) cuFuncGetAttribute(value *int32, attribute int32, function handle) result {
	return d.do("cuFuncGetAttribute", func() result {
		name, _ := d.kernel(function)
		if name == "" {
			return invalidHandle
		}
		*value = map[int32]int32{maxThreadsPerBlock: 1024, registersPerThread: 32, dynamicSharedMemory: d.granted[name]}[attribute]
		return success
	})
}

// work returns the work of a kernel that is launched with the parameters n, or the error of such a
// launch.
func (d *fakeDriver) work(n *kernelNode) (func(), result) {
	name, k := d.kernel(n.function)
	grid, block := n.grid, n.block
	if name == "" || grid[0]*grid[1]*grid[2] == 0 || block[0] == 0 || block[0] > 1024 || n.shared > 48<<10 && int32(n.shared) > d.granted[name] {
		return nil, invalidValue
	}
	places := unsafe.Slice(n.parameters, len(k.sizes)+1)
	values := make([]unsafe.Pointer, len(k.sizes)) // a launch copies its arguments
	for i, bytes := range k.sizes {
		value := make([]byte, bytes)
		copy(value, unsafe.Slice((*byte)(places[i]), bytes))
		values[i] = unsafe.Pointer(&value[0])
	}
	if places[len(k.sizes)] != nil || n.extra != nil {
		d.t.Errorf("%s is given more arguments than it takes", name)
	}
	return func() {
		d.launched++
		for chain := range int(grid[2]) {
			k.run(values, chain)
		}
	}, success
}

func (d *fakeDriver) cuLaunchKernel(function handle, grid, block [3]uint32, shared uint32, stream handle, parameters *unsafe.Pointer) result {
	work, code := d.work(&kernelNode{function: function, grid: grid, block: block, shared: shared, parameters: parameters})
	if code != success {
		return code
	}
	return d.enqueue("cuLaunchKernel", stream, work)
}
