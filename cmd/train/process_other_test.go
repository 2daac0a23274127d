//go:build !unix

package main

func mainWithoutRoom() { panic("no limit on the size of files here") }
