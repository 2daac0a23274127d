//go:build !unix

package file

// These flags do not exist here.
const noWait, noFollow = 0, 0
