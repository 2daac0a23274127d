package datasets

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pkg/errors"
	"golang.org/x/text/unicode/norm"
)

// canonicalClass returns the name of a class, without surrounding space and in Unicode's normal
// form NFC, which a file system may have changed. Integers lose leading zeros, so that the
// directory 00007 and the 7 of a table are one class.
func canonicalClass(name string) string {
	name = norm.NFC.String(strings.TrimSpace(name))
	if number, ok := classNumber(name); ok {
		return strconv.FormatInt(number, 10)
	}
	return name
}

// checkClass returns an error unless the name of a class is valid UTF-8. The JSON of a run's files
// replaces other bytes, so that the run would not know its classes again.
func checkClass(name string) error {
	if !utf8.ValidString(name) {
		return errors.Errorf("class names must be UTF-8, got %q", name)
	}
	return nil
}

func classNumber(name string) (int64, bool) {
	number, err := strconv.ParseInt(name, 10, 64)
	return number, err == nil && number >= 0 && name[0] != '+' && name[0] != '-'
}

// compareClasses orders class names: first integers, by value, then other names.
func compareClasses(a, b string) int {
	x, isNumber := classNumber(a)
	y, alsoNumber := classNumber(b)
	switch {
	case isNumber && alsoNumber:
		return cmp.Compare(x, y)
	case isNumber:
		return -1
	case alsoNumber:
		return 1
	default:
		return strings.Compare(a, b)
	}
}

// twinClasses returns the first two class names that differ only in upper and lower case, in space
// or in Unicode's form, and the number of such pairs.
func twinClasses(names []string) (first, second string, pairs int) {
	known := map[string]string{}
	for _, name := range names {
		key := strings.ToLower(strings.Join(strings.Fields(norm.NFKC.String(name)), ""))
		if other, is := known[key]; is {
			if pairs++; pairs == 1 {
				first, second = other, name
			}
			continue
		}
		known[key] = name
	}
	return first, second, pairs
}

// joinedClasses returns the class names that join others by a comma, semicolon, bar or plus sign.
func joinedClasses(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		parts := strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune(",;|+", r) })
		return len(parts) < 2 || slices.ContainsFunc(parts, func(part string) bool { return !slices.Contains(names, canonicalClass(part)) })
	})
}

// missingWords are class names in a table, in lower case, that programs write for a missing value.
var missingWords = []string{"nan", "null", "na", "n/a", "<na>"}

func isMissingWord(class string) bool {
	return slices.Contains(missingWords, strings.ToLower(class))
}

// abbreviated lists at most eight names.
func abbreviated(names []string) string {
	if len(names) > 8 {
		return strings.Join(names[:8], ", ") + ", ... (" + strconv.Itoa(len(names)) + " in all)"
	}
	return strings.Join(names, ", ")
}
