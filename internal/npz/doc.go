// Package npz writes NumPy's archives of arrays, for programs that go on in Python.
package npz
