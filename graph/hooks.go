package graph

// Hooks stand between the layers and the graph: they change a network that knows nothing of them
// into another one, such as one whose weights are drawn anew at each step. What a hook makes goes
// into the graph as it is, and so do gradients.
type Hooks struct {
	// Parameter returns what a layer gets when it asks for a parameter of that name, initializer
	// and shape. When it is nil, layers get the parameter itself.
	Parameter func(name string, initialize Initializer, shape ...int) *Node
	// Apply returns what a layer gets when it applies the op to the inputs, or nil for the op's own
	// output. Inputs may be nil: Builder.Apply reports what is wrong with them.
	Apply func(op Op, inputs []*Node) *Node
}

// unhooked takes the hooks away until the returned function is called.
func (b *Builder) withoutHooks() (end func()) {
	hooks := b.Hooks
	b.Hooks = Hooks{}
	return func() { b.Hooks = hooks }
}

// replaced is what the hook makes in place of an op's output; nil when there is no hook or it
// leaves the op alone.
func (b *Builder) applyHook(op Op, inputs []*Node) *Node {
	hook := b.Hooks.Apply
	if hook == nil || b.err != nil {
		return nil
	}
	defer b.withoutHooks()()
	return hook(op, inputs)
}
