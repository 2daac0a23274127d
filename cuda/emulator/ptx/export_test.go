package ptx

// Operation has the PTX types that an opcode reads and gives.
func Operation(opcode string) (reads []string, gives string) {
	o := operations[opcode]
	return o.reads, o.gives
}

// Opcodes are the opcodes that compute one register from others.
func Opcodes() []string {
	var all []string
	for opcode := range operations {
		all = append(all, opcode)
	}
	return all
}
