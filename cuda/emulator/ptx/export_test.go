package ptx

// Operation is what an opcode reads and gives, as PTX types.
func Operation(opcode string) (reads []string, gives string) {
	o := operations[opcode]
	return o.reads, o.gives
}

// Opcodes are those that compute one register of others.
func Opcodes() []string {
	var all []string
	for opcode := range operations {
		all = append(all, opcode)
	}
	return all
}
