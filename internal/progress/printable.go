package progress

import (
	"fmt"
	"io"
	"strings"
	"unicode"
)

// printable returns a text with control characters, other than line breaks and tabs, replaced by
// their escapes, as \u001b: names of classes, files and runs may come from anywhere, and must not
// move the cursor of a terminal, clear it, set its title, or reorder the text on it. JSON has the
// same escapes, so that a JSON text keeps its meaning.
func printable(text string) string {
	if strings.IndexFunc(text, controls) < 0 {
		return text
	}
	var out strings.Builder
	for i, r := range text {
		if controls(r) {
			fmt.Fprintf(&out, `\u%04x`, r)
			continue
		}
		n := len(string(r))
		if r == unicode.ReplacementChar && !strings.HasPrefix(text[i:], string(r)) {
			n = 1 // a byte that is not UTF-8, or a part of a character that was cut
		}
		out.WriteString(text[i : i+n])
	}
	return out.String()
}

// controls reports whether a character controls a terminal, or the direction of text.
func controls(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
}

// Remark writes a line of text, which it makes printable. Errors of writing are ignored.
func Remark(to io.Writer, format string, values ...any) {
	_, _ = io.WriteString(to, printable(fmt.Sprintf(format, values...))+"\n")
}
