// Package doctest tests the documents: the README's program compiles and runs, every command of the
// README and of the tutorial runs on small data, every command of any page has a subcommand and
// flags that exist, and every relative link leads to a file and a heading.
package doctest
