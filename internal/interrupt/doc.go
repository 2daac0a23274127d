// Package interrupt turns the signals of users and cluster schedulers into the cancellation of a
// context.
//
// The first signal cancels the context, so that the program can save its work. The second signal
// ends the program at once. A server takes SIGHUP as the request to reload, see Hangups.
package interrupt
