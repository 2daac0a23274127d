// Package npz writes NumPy's archives of arrays, for further work in Python.
package npz
