//go:build !purego

package random

import "golang.org/x/sys/cpu"

//go:generate go run -C ../kernel/generate ./normals -out ../../random/normal_neon_arm64.s -stubs ../../random/normal_neon_arm64.go

// hasAssembly reports whether there is NEON and GODEBUG does not disable it.
var hasAssembly = cpu.ARM64.HasASIMD
