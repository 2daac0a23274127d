// Package progress shows a person how far work is.
//
// Noun. A Line is one piece of work: a live line on a terminal, else a plain line now and then.
//
// Policy: it writes where it is told to, by the clock that it is given.
package progress
