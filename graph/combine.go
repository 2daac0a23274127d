package graph

import (
	"slices"

	"github.com/pollen-ml/pollen/tensor"
)

// Combiner is an op that can also do the work of ops around it, in the same pass over memory. The
// gradient of a normalization by its input, for example, reads what the gradients by its scale and
// shift read, and can apply the gradient of the activation that follows while it reads.
type Combiner interface {
	Op
	// Combine returns the op that replaces the one at a site, or false if there is nothing to
	// combine.
	Combine(at Site) (Combination, bool)
}

// Combination is an op that computes several values. Op's output is the value of the Combiner; its
// further outputs, see Lowering.Part, are the values of Parts.
type Combination struct {
	Op     Op
	Inputs []Site
	Parts  []Site
}

// Site is a value of the graph under compilation, as a Combiner sees it. Two sites are equal if
// they are the same value.
type Site struct {
	value  *value
	module *module
}

// Op returns the op that computes the value, or nil for an input of the graph.
func (s Site) Op() Op { return s.value.op }

// Shape returns the value's shape.
func (s Site) Shape() tensor.Shape { return s.value.shape }

// Inputs returns the inputs of the value's op.
func (s Site) Inputs() []Site {
	all := make([]Site, len(s.value.inputs))
	for i, in := range s.value.inputs {
		all[i] = Site{in, s.module}
	}
	return all
}

// Users returns the values whose ops read this one, each once. It is nil if the value outlives the
// step, as an output or a metric does.
func (s Site) Users() []Site {
	if slices.ContainsFunc(s.module.kept(), func(k namedValue) bool { return k.value == s.value }) {
		return nil
	}
	var all []Site
	for _, v := range s.value.users {
		all = append(all, Site{v, s.module})
	}
	return all
}

// IsSum reports whether the value is the sum of two gradients that differentiation inserts where a
// node has several consumers.
func (s Site) IsSum() bool {
	_, is := s.value.op.(fanIn)
	return is
}

// part is the op of a value whose only input writes it as a further output.
type part struct{ Op }

func isPart(v *value) bool {
	_, is := v.op.(part)
	return is
}

// combine applies Combiners and reports whether any of them combined ops. It drops values that are
// no longer read.
func (m *module) combine() bool {
	m.findUsers()
	combined := false
	for _, v := range m.values {
		combiner, ok := v.op.(Combiner)
		if !ok || !slices.Contains(m.values, v) { // no longer there
			continue
		}
		c, ok := combiner.Combine(Site{v, m})
		if !ok {
			continue
		}
		combined = true
		v.op, v.inputs = c.Op, nil
		for _, in := range c.Inputs {
			v.inputs = append(v.inputs, in.value)
		}
		for _, p := range c.Parts {
			p.value.op, p.value.inputs = part{p.value.op}, []*value{v}
			v.parts = append(v.parts, p.value)
		}
		m.dropUnread()
		m.findUsers()
	}
	return combined
}

func (m *module) findUsers() {
	for _, v := range m.values {
		v.users = nil
	}
	for _, v := range m.values {
		for _, in := range v.inputs {
			if !slices.Contains(in.users, v) {
				in.users = append(in.users, v)
			}
		}
	}
}

// dropUnread removes the values, except inputs, on which no output, metric or update depends.
func (m *module) dropUnread() {
	read := map[*value]bool{}
	var visit func(v *value)
	visit = func(v *value) {
		if read[v] {
			return
		}
		read[v] = true
		for _, in := range v.inputs {
			visit(in)
		}
	}
	for _, k := range m.kept() {
		visit(k.value)
	}
	for _, v := range m.updates {
		visit(v)
	}
	m.values = slices.DeleteFunc(slices.Clone(m.values), func(v *value) bool {
		return !read[v] && v.op != nil && !slices.ContainsFunc(v.inputs, func(in *value) bool { return isPart(v) && read[in] })
	})
}
