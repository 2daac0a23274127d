// Package progress shows a person how far work is.
//
// Nouns. A Line is one piece of work: a live line on a terminal, else a plain line now and then.
// Results are what the work is for.
//
// Policy: it writes where it is told to, by the clock that it is given.
package progress
