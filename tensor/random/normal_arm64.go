//go:build !purego

package random

import "golang.org/x/sys/cpu"

//go:generate go run -C ../kernel/generate ./normals -out ../../random/normal_neon_arm64.s -stubs ../../random/normal_neon_arm64.go

// hasAssembly is whether there is NEON, unless the environment turns it off.
var hasAssembly = cpu.ARM64.HasASIMD
