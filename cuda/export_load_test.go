package cuda

import (
	"bytes"
	"cmp"
	"runtime"
	"slices"
	"time"
	"unsafe"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/tensor"
)

// Compiled has the driver's figures for a kernel that it has compiled, or the error if it has not.
type Compiled struct {
	File, Symbol string
	Time         time.Duration
	Log          string // of the driver's compiler
	Err          error

	Registers  int32 // of a thread
	Local      int32 // bytes of a thread's local memory: spilled registers and arrays
	Shared     int32 // bytes of a block's static shared memory
	MaxThreads int32 // of a block
}

// CompileAll has the driver of a device's first GPU compile the kernels that the GPU uses, in the
// order of their files and symbols, and passes each to visit, including those that do not compile.
// It compiles kernel number shard of every shards kernels. It returns how many kernels the GPU
// uses.
func CompileAll(d tensor.Device, shard, shards int, visit func(Compiled)) (int, error) {
	g := d.(*device).gpus[0]
	var all []Compiled
	for symbol, s := range g.kernelFiles {
		all = append(all, Compiled{File: s.name, Symbol: symbol})
	}
	slices.SortFunc(all, func(a, b Compiled) int { return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Symbol, b.Symbol)) })
	for i := shard; i < len(all); i += shards {
		c := &all[i]
		if err := g.do(func() error {
			begin := time.Now()
			c.Err = c.compile(g)
			c.Time = time.Since(begin)
			// Compile it once more without a log, as devices do, so that the driver caches the
			// result for later processes.
			for _, early := range []bool{false, true} {
				if c.Err == nil && (g.pdl || !early) {
					_, c.Err = g.function(c.Symbol, 0, early)
				}
			}
			return nil
		}); err != nil {
			return len(all), err
		}
		visit(*c)
	}
	return len(all), nil
}

// compile loads the kernel's module, reads the kernel's attributes, and unloads the module.
func (c *Compiled) compile(g *gpu) error {
	info, complaint := make([]byte, jitLogBytes), make([]byte, jitLogBytes)
	var pinned runtime.Pinner // the driver writes through addresses that are no arguments of the call
	pinned.Pin(&info[0])
	pinned.Pin(&complaint[0])
	defer pinned.Unpin()
	options := []jitOption{infoLog, infoLogBytes, errorLog, errorLogBytes, logVerbose}
	values := []uintptr{uintptr(unsafe.Pointer(&info[0])), jitLogBytes, uintptr(unsafe.Pointer(&complaint[0])), jitLogBytes, 1}
	written := func(log []byte) string {
		text, _, _ := bytes.Cut(log, []byte{0})
		return string(bytes.TrimSpace(text))
	}
	var module, function handle
	code := g.cuModuleLoadDataEx(&module, cString(g.kernelFiles[c.Symbol].ptx(c.Symbol, g.pdl)), uint32(len(options)), &options[0], &values[0])
	c.Log = written(info)
	if err := g.check("cuModuleLoadDataEx", code); err != nil {
		return errors.Wrapf(err, "the driver's compiler says %q%s", written(complaint), hint(code))
	}
	err := g.check("cuModuleGetFunction", g.cuModuleGetFunction(&function, module, cString(c.Symbol)))
	for attribute, value := range map[int32]*int32{
		registersPerThread: &c.Registers, localMemory: &c.Local, staticSharedMemory: &c.Shared, maxThreadsPerBlock: &c.MaxThreads,
	} {
		if err == nil {
			err = g.check("cuFuncGetAttribute", g.cuFuncGetAttribute(value, attribute, function))
		}
	}
	return cmp.Or(err, g.check("cuModuleUnload", g.cuModuleUnload(module)))
}
