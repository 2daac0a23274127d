package ptx

import (
	"strconv"
	"strings"
)

// entry is a kernel that is being translated.
type entry struct {
	name       string
	threads    int // maximum number of threads of a block
	parameters []parameter
	registers  map[string]registers // by the prefix of their names, before the number
	symbols    map[string]string    // C++ expressions of the addresses of parameters and arrays, by name
	local      int                  // bytes of local memory
	inner      map[string]string    // types of the registers declared in the { } block that is being read, by name
	declared   map[string]bool      // variables that are declared
	order      []string             // their declarations
	code       strings.Builder
	line       int
}

type parameter struct {
	name  string
	bytes int
	kind  byte // 'b' is a buffer, 'i' an integer, 'f' a floating-point number
}

type registers struct {
	kind  string
	count int
}

func label(name string) string { return "at_" + strings.TrimPrefix(name, "$") }

func number(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}
