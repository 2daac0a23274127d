package ptx

// Operation returns the PTX types of an opcode's operands and of its result.
func Operation(opcode string) (reads []string, gives string) {
	o := operations[opcode]
	return o.reads, o.gives
}

// Opcodes returns the opcodes that compute one register from others.
func Opcodes() []string {
	var all []string
	for opcode := range operations {
		all = append(all, opcode)
	}
	return all
}
