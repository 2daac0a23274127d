package pollen

// background does one thing at a time, concurrently with its caller. The zero value is ready.
type background struct{ done chan error }

// begin starts do. What was begun before must have been waited for.
func (b *background) begin(do func() error) {
	b.done = make(chan error, 1)
	go func() { b.done <- do() }()
}

// busy reports whether what was begun is still under way.
func (b *background) busy() bool { return b.done != nil && len(b.done) == 0 }

// wait returns the error of what was begun, once it is done; nil if nothing was.
func (b *background) wait() error {
	if b.done == nil {
		return nil
	}
	err := <-b.done
	b.done = nil
	return err
}
