package report

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pollen-ml/pollen/evaluate"
)

// visible returns a name on one line, with control characters, characters that reorder text and
// bytes that are not UTF-8 replaced by escapes, such as \n, \u202e and \xff. Names of classes,
// files and runs come from anywhere, and SVG and HTML forbid or hide such characters.
func visible(name string) string {
	hidden := func(r rune) bool {
		return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' || r == '\ufffe' || r == '\uffff'
	}
	if strings.IndexFunc(name, hidden) < 0 && utf8.ValidString(name) {
		return name
	}
	var out strings.Builder
	for i, r := range name {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(name[i:], string(r)):
			fmt.Fprintf(&out, `\x%02x`, name[i])
		case hidden(r):
			quoted := fmt.Sprintf("%+q", r) // such as '\n'
			out.WriteString(quoted[1 : len(quoted)-1])
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}

// renamed returns copies of subjects with other names of runs, data, classes and images. image and
// class get the number of the image or class as well.
func renamed(subjects []Subject, plain func(string) string, run func(i int, name string) string, class, image func(i int, name string) string) []Subject {
	each := func(names []string, as func(i int, name string) string) []string {
		var all []string
		for i, name := range names {
			all = append(all, as(i, name))
		}
		return all
	}
	of := func(p *evaluate.Predictions) *evaluate.Predictions {
		if p == nil {
			return nil
		}
		other := *p
		other.Name = plain(p.Name)
		return &other
	}
	images := func(p *Images) *Images {
		if p == nil {
			return nil
		}
		other := *p
		other.ClassNames, other.Names = each(p.ClassNames, class), each(p.Names, image)
		return &other
	}
	others := append([]Subject(nil), subjects...)
	for i, s := range subjects {
		others[i].Name = run(i, s.Name)
		others[i].InImages, others[i].OutImages = images(s.InImages), images(s.OutImages)
		if s.Assessment != nil {
			assessment := *s.Assessment
			assessment.In, assessment.Out = of(s.In), of(s.Out)
			others[i].Assessment = &assessment
		}
	}
	return others
}

// visibleNames returns the subjects with visible names.
func visibleNames(subjects []Subject) []Subject {
	name := func(_ int, name string) string { return visible(name) }
	return renamed(subjects, visible, name, name, name)
}

// numberedName is a name with letters that the font of PNG files lacks, and the number or the name
// with question marks that they show instead.
type numberedName struct{ number, name string }

// questioned returns a name with a question mark for each letter that the figures' font lacks.
func questioned(name string) string {
	if writable(name) {
		return name
	}
	return strings.Map(func(r rune) rune {
		switch {
		case writable(string(r)):
			return r
		case unicode.Is(unicode.Mn, r):
			return -1 // a mark on the letter before
		}
		return '?'
	}, name)
}

// looks has names by what they look like with question marks. A look of several names has "".
type looks map[string]string

func (l looks) add(name string) {
	look := questioned(name)
	if other, known := l[look]; known && other != name {
		name = ""
	}
	l[look] = name
}

// of returns the look of a name, or "" if it has no letter or digit, or if other names look alike.
func (l looks) of(name string) string {
	look := questioned(name)
	if l[look] != name || strings.IndexFunc(look, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) < 0 {
		return ""
	}
	return look
}

// looksOf returns the looks of the names of runs, classes and data, by these words.
func looksOf(subjects []Subject) map[string]looks {
	all := map[string]looks{"run": {}, "class": {}, "data": {}}
	for _, s := range subjects {
		all["run"].add(s.Name)
		for _, images := range []*Images{s.InImages, s.OutImages} {
			if images != nil {
				for _, name := range images.ClassNames {
					all["class"].add(name)
				}
			}
		}
		if s.Assessment != nil {
			for _, p := range []*evaluate.Predictions{s.In, s.Out} {
				if p != nil {
					all["data"].add(p.Name)
				}
			}
		}
	}
	return all
}

// numberedNames returns the subjects with names that the figures' font can write: in others,
// letters become question marks, or the name a number, which it lists, except for images. changed
// is false if all names can be written.
func numberedNames(subjects []Subject) (numbered []Subject, names []numberedName, changed bool) {
	looks := looksOf(subjects)
	seen := map[numberedName]bool{}
	as := func(what string, number int, name string) string {
		if writable(name) {
			return name
		}
		changed = true
		n := numberedName{fmt.Sprintf("%s %d", what, number), name}
		if look := looks[what].of(name); look != "" {
			n.number = look
		}
		if what != imageNumber && !seen[n] {
			seen[n] = true
			names = append(names, n)
		}
		return n.number
	}
	data := map[string]int{}
	plain := func(name string) string {
		if _, ok := data[name]; !ok {
			data[name] = len(data) + 1
		}
		return as("data", data[name], name)
	}
	run := func(i int, name string) string { return as("run", i+1, name) }
	class := func(i int, name string) string { return as("class", i, name) } // from 0, as in answers
	image := func(i int, name string) string { return as(imageNumber, i+1, name) }
	return renamed(subjects, plain, run, class, image), names, changed
}
