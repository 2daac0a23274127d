package cuda

import (
	"unsafe"

	"github.com/pollen-ml/pollen/tensor"
)

// maxReadbackBytes limits what is read back of each chain.
const maxReadbackBytes = 64 << 10

// readback is memory of the Chain arena that is copied to the host at the end of each run, before
// the run's only synchronization.
//
// A session reads its metrics from all chains after each run. Reading them one by one costs a
// synchronization each. So once the same bytes have been read from chain 0, 1, ... to the last,
// each run also copies them to pinned memory, where the next reads find them. A run after which
// nothing was read ends that.
type readback struct {
	memory unsafe.Pointer // pinned; chain c's bytes begin at c*bytes
	source address        // of chain 0
	bytes  int            // of each chain; 0 if nothing is read back
	valid  bool           // whether memory has what the GPU has
	used   bool           // whether memory was read since the last run

	// The reads that may become a readback: of candidateBytes at candidate in chain 0, and so on.
	candidate      address
	candidateBytes int
	nextChain      int // the chain whose read would continue the series, or -1
}

// cached fills dst from the readback and returns true, if it holds these bytes. base is their
// address in chain 0.
func (p *shard) cached(base address, chain int, dst []byte) bool {
	a := &p.readback
	if !a.valid || base != a.source || len(dst) != a.bytes {
		return false
	}
	copy(dst, unsafe.Slice((*byte)(unsafe.Add(a.memory, chain*a.bytes)), a.bytes))
	a.used = true
	return true
}

// observeRead follows a series of reads, and sets up a readback once all chains have been read.
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

// dropReadback ends the readback.
func (p *shard) dropReadback() error {
	a := &p.readback
	memory := a.memory
	*a = readback{}
	if memory == nil {
		return nil
	}
	return p.check("cuMemFreeHost", p.cuMemFreeHost(memory))
}
