package tensor

// maxPrepared bounds the memory of the prepared arguments of all chains, in bytes. Launches beyond
// it prepare their arguments in every step, in memory that they share.
const maxPrepared = 256 << 20

// preparations is the memory of a workload's prepared arguments.
type preparations struct {
	offsets []int // of each launch's workspace in the memory of a chain; -1 if it is not kept
	bytes   int   // for each chain
	sources []*Buffer
}

// planPreparations chooses the launches whose arguments are prepared once.
func planPreparations(s Workload) preparations {
	p := preparations{offsets: make([]int, len(s.Launches))}
	for i := range s.Launches {
		p.offsets[i] = -1
		host := &s.Launches[i].Host
		if host.Preparation.Phases == 0 || host.Joint.Chains > 1 {
			continue
		}
		source, bytes := s.Launches[i].Arguments[host.Preparation.Argument].Buffer, Align(host.Workspace)
		own := source.Arena == Chain || source.Arena == Shared && s.Chains == 1
		if own && !writes(s.Launches, source) && (p.bytes+bytes)*s.Chains <= maxPrepared {
			p.offsets[i], p.bytes, p.sources = p.bytes, p.bytes+bytes, append(p.sources, source)
		}
	}
	return p
}

// writes reports whether a launch writes memory of b.
func writes(launches []Launch, b *Buffer) bool {
	for i := range launches {
		for _, a := range launches[i].Arguments {
			if a.Buffer != nil && a.Access&Write != 0 && a.Buffer.Overlaps(b) {
				return true
			}
		}
	}
	return false
}

// phases returns the phases of a launch that a chain must run, out of its first n.
func (r *hostRunner) phases(launch, chain, n int) []Phase {
	host := &r.launches[launch].Host
	if r.prepared.offsets[launch] >= 0 && r.ready[chain] {
		return host.Phases[min(host.Preparation.Phases, n):n]
	}
	return host.Phases[:n]
}

// changed makes a chain prepare its arguments again, after b has been written.
func (r *hostRunner) changed(b *Buffer, chain int) {
	for _, source := range r.prepared.sources {
		if source.Overlaps(b) {
			r.ready[chain] = false
		}
	}
}
