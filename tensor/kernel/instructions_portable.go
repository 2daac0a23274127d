//go:build (!amd64 && !arm64) || purego

package kernel

// available reports that a build without assembly has portable Go only.
func available() instructionSet { return portableGo }
