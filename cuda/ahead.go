package cuda

import (
	"unsafe"

	"github.com/pollen-ml/pollen/tensor"
)

// aheadBytes is the most that is read ahead of each chain.
const aheadBytes = 64 << 10

// ahead is a place that was read from all chains one after the other, as a session reads its
// metrics after each run. From then on, a run ends with copies of it into pinned memory, before the
// only synchronisation, and the reads find them there; this ends with a run after which nothing is
// read.
type ahead struct {
	memory      unsafe.Pointer // pinned
	at          address        // of the first chain
	bytes       int            // of each chain; 0 if nothing is read ahead
	fresh, used bool           // whether memory is what the GPU has; was read since the last run

	sweep      address // the place that is being read of all chains
	sweepBytes int
	next       int // the chain whose turn it is
}

// recall returns what was read ahead, if it is the place asked for. base is the place in the first
// chain.
func (p *part) recall(base address, chain int, dst []byte) bool {
	a := &p.ahead
	if !a.fresh || base != a.at || len(dst) != a.bytes {
		return false
	}
	copy(dst, unsafe.Slice((*byte)(unsafe.Add(a.memory, chain*a.bytes)), a.bytes))
	a.used = true
	return true
}

// notice follows reads of one chain after the other; once all have been read, it begins to read
// ahead.
func (p *part) notice(base address, chain, bytes int) error {
	a := &p.ahead
	if a.bytes > 0 || bytes == 0 || bytes > aheadBytes {
		return nil
	}
	if chain == 0 {
		a.sweep, a.sweepBytes, a.next = base, bytes, 0
	}
	if chain != a.next || base != a.sweep || bytes != a.sweepBytes {
		a.next = -1
		return nil
	}
	if a.next++; a.next < p.chains {
		return nil
	}
	if err := p.check("cuMemAllocHost_v2", p.cuMemAllocHost_v2(&a.memory, uint64(p.chains*bytes))); err != nil {
		return err
	}
	a.at, a.bytes, a.used, a.fresh = base, bytes, true, false
	return nil
}

// readAhead starts the copies; they are there after the next synchronisation.
func (p *part) readAhead() error {
	a := &p.ahead
	if a.bytes == 0 {
		return nil
	}
	if !a.used {
		return p.forget()
	}
	a.used = false
	for chain := range p.chains {
		from := a.at + address(chain)*address(p.stride[tensor.Chain])
		code := p.cuMemcpyDtoHAsync_v2(unsafe.Add(a.memory, chain*a.bytes), from, uint64(a.bytes), p.stream)
		if err := p.check("cuMemcpyDtoHAsync_v2", code); err != nil {
			return err
		}
	}
	return nil
}

// forget stops reading ahead.
func (p *part) forget() error {
	a := &p.ahead
	memory := a.memory
	*a = ahead{}
	if memory == nil {
		return nil
	}
	return p.check("cuMemFreeHost", p.cuMemFreeHost(memory))
}
