// Package devices opens the devices of a machine by name, for programs with a flag for the device:
//
//	device, note, err := devices.Open(devices.Options{Name: "cuda:1"})
//
// bayes.WithDevice makes a run compute on the device. Without one it computes on the CPU.
package devices
