package tensor

// maxPrepared bounds the memory of the prepared arguments of all chains, in bytes. Launches beyond
// it prepare their arguments in every step, in memory that they share.
const maxPrepared = 256 << 20

// preparations is the memory of a workload's prepared arguments. Arguments in the Shared arena are
// prepared once for all chains.
type preparations struct {
	arenas  []Arena     // of each launch's prepared argument
	offsets []int       // of each launch's workspace in the memory of that arena; -1 if it is prepared in every step
	bytes   [arenas]int // for each chain, or for all in the Shared arena
	sources []*Buffer   // the arguments that are prepared once
}

// planPreparations chooses the launches whose arguments are prepared once.
func planPreparations(w Workload) preparations {
	p := preparations{arenas: make([]Arena, len(w.Launches)), offsets: make([]int, len(w.Launches))}
	for i := range w.Launches {
		p.offsets[i] = -1
		host := &w.Launches[i].Host
		if host.Preparation.Phases == 0 || host.Joint.Chains > 1 {
			continue
		}
		source, bytes := w.Launches[i].Arguments[host.Preparation.Argument].Buffer, p.bytes
		if source.Arena != Shared && source.Arena != Chain || writes(w.Launches, source) {
			continue
		}
		bytes[source.Arena] += Align(host.Workspace)
		if bytes[Shared]+bytes[Chain]*w.Chains > maxPrepared {
			continue
		}
		p.arenas[i], p.offsets[i], p.bytes, p.sources = source.Arena, p.bytes[source.Arena], bytes, append(p.sources, source)
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

// prepareShared prepares the arguments that all chains share, on all workers.
func (r *hostRunner) prepareShared() {
	if r.sharedReady {
		return
	}
	for w := range r.args {
		r.bindChain(&r.args[w], w, 0, 0)
	}
	for i, offset := range r.prepared.offsets {
		if host := &r.launches[i].Host; offset >= 0 && r.prepared.arenas[i] == Shared {
			r.parallelPhases(i, host.Phases[:host.Preparation.Phases])
		}
	}
	r.sharedReady = true
}

// phases returns the phases of a launch that a chain must run, out of its first n.
func (r *hostRunner) phases(launch, chain, n int) []Phase {
	host := &r.launches[launch].Host
	if r.prepared.offsets[launch] >= 0 && (r.prepared.arenas[launch] == Shared || r.ready[chain]) {
		return host.Phases[min(host.Preparation.Phases, n):n]
	}
	return host.Phases[:n]
}

// changed makes the runner prepare arguments again, after a chain's copy of b has been written.
func (r *hostRunner) changed(b *Buffer, chain int) {
	for _, source := range r.prepared.sources {
		switch {
		case !source.Overlaps(b):
		case source.Arena == Shared:
			r.sharedReady = false
		default:
			r.ready[chain] = false
		}
	}
}
