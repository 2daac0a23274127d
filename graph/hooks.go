package graph

// Hooks replace the nodes that layers make, so that a network can be transformed without changing
// its layers: Bayes by Backprop replaces each parameter by a random weight that is drawn again at
// each step. Hooks are not called for the nodes that a hook makes, nor for gradients.
type Hooks struct {
	// Parameter replaces Builder.Parameter: it returns the node that a layer uses as the parameter.
	// If it is nil, layers get the parameter itself.
	Parameter func(name string, initialize Initializer, shape ...int) *Node
	// Apply is called by Builder.Apply, and returns the node that replaces the op's output, or nil
	// to leave it as it is. Inputs may be nil: Builder.Apply reports that error.
	Apply func(op Op, inputs []*Node) *Node
}

// withoutHooks removes the hooks until the returned function is called.
func (b *Builder) withoutHooks() (end func()) {
	hooks := b.Hooks
	b.Hooks = Hooks{}
	return func() { b.Hooks = hooks }
}

// applyHook returns the hook's replacement for an op's output, or nil if there is none.
func (b *Builder) applyHook(op Op, inputs []*Node) *Node {
	hook := b.Hooks.Apply
	if hook == nil || b.err != nil {
		return nil
	}
	defer b.withoutHooks()()
	return hook(op, inputs)
}
