//go:build !amd64 || purego

package kernel

// maxLineFast and placeLineFast return false, so the caller visits window after window.
func maxLineFast[T Float](p *poolPlan, line, rows []T) bool { return false }

func placeLineFast[T Float](p *poolPlan, places []uint8, rows []T) bool { return false }
