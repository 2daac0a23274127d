// Package npz writes arrays in NumPy's formats .npz and .npy, for further work in Python:
// np.load("x.npz")["theta"].
package npz
