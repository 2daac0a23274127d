package memory

import (
	"math"
	"unsafe"

	"golang.org/x/sys/windows"
)

// status is MEMORYSTATUSEX of the Windows API.
type status struct {
	length, load                        uint32
	physical, availablePhysical         uint64
	pageFile, availablePageFile         uint64
	virtual, availableVirtual, extended uint64
}

var globalMemoryStatusEx = windows.NewLazySystemDLL("kernel32.dll").NewProc("GlobalMemoryStatusEx")

// system returns the machine's available memory, or what the process can commit if that is less.
func system() Limit {
	s := status{length: uint32(unsafe.Sizeof(status{}))}
	if ok, _, _ := globalMemoryStatusEx.Call(uintptr(unsafe.Pointer(&s))); ok == 0 {
		return unlimited
	}
	bytes := min(s.availablePhysical, s.availablePageFile)
	return Limit{int64(min(bytes, math.MaxInt64)), "the machine's memory"}
}
