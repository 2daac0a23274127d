package cuda

import (
	"unsafe"

	"github.com/pollen-ml/pollen/tensor"
)

// maxReadbackBytes is the largest number of bytes that are read back from each chain.
const maxReadbackBytes = 64 << 10

// cached fills dst from the readback and returns true if the readback has these bytes. base is
// their address in chain 0.
func (p *shard) cached(base address, chain int, dst []byte) bool {
	a := &p.readback
	if !a.valid || base != a.source || len(dst) != a.bytes {
		return false
	}
	copy(dst, unsafe.Slice((*byte)(unsafe.Add(a.memory, chain*a.bytes)), a.bytes))
	a.used = true
	return true
}

// observeRead tracks reads of the same bytes from chain 0, 1, ..., and sets up a readback once all
// chains have been read.
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

// startReadback starts the copies. They are complete after the next synchronization.
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

// dropReadback ends the readback and frees its memory.
func (p *shard) dropReadback() error {
	a := &p.readback
	memory := a.memory
	*a = readback{}
	if memory == nil {
		return nil
	}
	return p.check("cuMemFreeHost", p.cuMemFreeHost(memory))
}
