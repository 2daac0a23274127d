//go:build !unix

package command

func mainWithoutRoom() { panic("no limit on the size of files here") }
