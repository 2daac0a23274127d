// Package interrupt ends programs as people and clusters ask them to.
//
// Noun. A Stop is the signal that asked a program to end.
//
// Policy: the first signal ends the program's context, so that it can leave its work whole; the
// second one ends the program at once.
package interrupt
