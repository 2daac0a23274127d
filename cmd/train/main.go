// Command train is the program pollen under another name; see cmd/pollen.
package main

import (
	"os"

	"github.com/pollen-ml/pollen/internal/command"
)

func main() { os.Exit(command.Main()) }
