package datasets

import (
	"bytes"
	"fmt"
	"unicode"
	"unicode/utf8"
)

// pageStart is the number of bytes at the start of a file that pageAdvice examines for text.
const pageStart = 64

// pageAdvice returns a note for an error about a file that begins like text instead of data:
// often it is the page that a server sent instead of the file. It returns "" for other files.
func pageAdvice(start []byte) string {
	text := bytes.TrimSpace(bytes.TrimPrefix(start, []byte("\ufeff")))
	binary := bytes.ContainsFunc(text, func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) && !unicode.IsSpace(r) })
	switch {
	case len(text) > 1 && text[0] == '<' && text[1] > ' ' && text[1] < 127:
		return fmt.Sprintf(": %.20q begins an HTML page, which servers send instead of a missing file: download it again", text)
	case len(text) == 0 || binary:
		return ""
	}
	return fmt.Sprintf(": a text that begins with %.20q", text)
}
