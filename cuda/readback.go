package cuda

import (
	"unsafe"

	"github.com/pollen-ml/pollen/tensor"
)

// maxReadbackBytes is the most that is read ahead of each chain.
const maxReadbackBytes = 64 << 10

// ahead is a place that was read from all chains one after the other, as a session reads its
// metrics after each run. From then on, a run ends with copies of it into pinned memory, before the
// only synchronisation, and the reads find them there; this ends with a run after which nothing is
// read.
type readback struct {
	memory      unsafe.Pointer // pinned
	source      address        // of the first chain
	bytes       int            // of each chain; 0 if nothing is read ahead
	valid, used bool           // whether memory is what the GPU has; was read since the last run

	candidate      address // the place that is being read of all chains
	candidateBytes int
	nextChain      int // the chain whose turn it is
}

// recall returns what was read ahead, if it is the place asked for. base is the place in the first
// chain.
func (p *shard) cached(base address, chain int, dst []byte) bool {
	a := &p.readback
	if !a.valid || base != a.source || len(dst) != a.bytes {
		return false
	}
	copy(dst, unsafe.Slice((*byte)(unsafe.Add(a.memory, chain*a.bytes)), a.bytes))
	a.used = true
	return true
}

// notice follows reads of one chain after the other; once all have been read, it begins to read
// ahead.
func (p *shard) observeRead(base address, chain, bytes int) error {
	a := &p.readback
	if a.bytes > 0 || bytes == 0 || bytes > maxReadbackBytes {
		return nil
	}
	if chain == 0 {
		a.candidate, a.candidateBytes, a.nextChain = base, bytes, 0
	}
	if chain != a.nextChain || base != a.candidate || bytes != a.candidateBytes {
		a.nextChain = -1
		return nil
	}
	if a.nextChain++; a.nextChain < p.chains {
		return nil
	}
	if err := p.check("cuMemAllocHost_v2", p.cuMemAllocHost_v2(&a.memory, uint64(p.chains*bytes))); err != nil {
		return err
	}
	a.source, a.bytes, a.used, a.valid = base, bytes, true, false
	return nil
}

// startReadback starts the copies; they are there after the next synchronisation.
func (p *shard) startReadback() error {
	a := &p.readback
	if a.bytes == 0 {
		return nil
	}
	if !a.used {
		return p.dropReadback()
	}
	a.used = false
	for chain := range p.chains {
		from := a.source + address(chain)*address(p.stride[tensor.Chain])
		code := p.cuMemcpyDtoHAsync_v2(unsafe.Add(a.memory, chain*a.bytes), from, uint64(a.bytes), p.stream)
		if err := p.check("cuMemcpyDtoHAsync_v2", code); err != nil {
			return err
		}
	}
	return nil
}

// forget stops reading ahead.
func (p *shard) dropReadback() error {
	a := &p.readback
	memory := a.memory
	*a = readback{}
	if memory == nil {
		return nil
	}
	return p.check("cuMemFreeHost", p.cuMemFreeHost(memory))
}
