package main

// One package of each font module is imported to keep the module in go.mod. The font files are read from
// the modules' directories.
import (
	_ "codeberg.org/go-fonts/dejavu/dejavusans"
	_ "codeberg.org/go-fonts/latin-modern/lmroman10regular"
	_ "codeberg.org/go-fonts/liberation/liberationsansregular"
	_ "codeberg.org/go-fonts/stix/stix2textregular"
	_ "eliasnaur.com/font/roboto/robotoregular"
)

// fontModule is a Go module that has font files.
type fontModule struct {
	path    string
	dir     string // directory of the font files, as a pattern below the module's root
	licence string
}

var (
	goFonts     = fontModule{"golang.org/x/image", "font/gofont/ttfs", "BSD-3-Clause"}
	dejaVu      = fontModule{"codeberg.org/go-fonts/dejavu", "*", "Bitstream-Vera"}
	liberation  = fontModule{"codeberg.org/go-fonts/liberation", "*", "OFL-1.1"}
	latinModern = fontModule{"codeberg.org/go-fonts/latin-modern", "*", "GUST-Font-License"}
	stix        = fontModule{"codeberg.org/go-fonts/stix", "*", "OFL-1.1"}
	roboto      = fontModule{"eliasnaur.com/font", "roboto/ttfs", "Apache-2.0"}
	noto        = fontModule{"eliasnaur.com/font", "noto/sans/jp/regular", "OFL-1.1"}
)

// The Unicode alphabets from which the letters A to J are taken.
const (
	plain          = "ABCDEFGHIJ"
	mathBold       = "𝐀𝐁𝐂𝐃𝐄𝐅𝐆𝐇𝐈𝐉"
	script         = "𝒜ℬ𝒞𝒟ℰℱ𝒢ℋℐ𝒥"
	boldScript     = "𝓐𝓑𝓒𝓓𝓔𝓕𝓖𝓗𝓘𝓙"
	fraktur        = "𝔄𝔅ℭ𝔇𝔈𝔉𝔊ℌℑ𝔍"
	boldFraktur    = "𝕬𝕭𝕮𝕯𝕰𝕱𝕲𝕳𝕴𝕵"
	doubleStruck   = "𝔸𝔹ℂ𝔻𝔼𝔽𝔾ℍ𝕀𝕁"
	circled        = "ⒶⒷⒸⒹⒺⒻⒼⒽⒾⒿ"
	squared        = "🄰🄱🄲🄳🄴🄵🄶🄷🄸🄹"
	inverseCircled = "🅐🅑🅒🅓🅔🅕🅖🅗🅘🅙"
	inverseSquared = "🅰🅱🅲🅳🅴🅵🅶🅷🅸🅹"
)

// design is a set of faces of the same design. A design belongs to one split, so that the designs of test
// letters do not occur in training. Designs that imitate the same model (Times, Courier) share a split
// for the same reason.
type design struct {
	split  string
	name   string
	weight int // relative number of the design's images in its split
	module fontModule
	faces  []face
}

// face is a font file and the alphabet taken from it.
type face struct {
	file    string
	letters string
}

// plainFaces returns a face with the plain alphabet for each file.
func plainFaces(files ...string) []face {
	faces := make([]face, len(files))
	for i, file := range files {
		faces[i] = face{file, plain}
	}
	return faces
}

var designs = []design{
	{"train", "go-sans", 4, goFonts, plainFaces(
		"Go-Regular.ttf", "Go-Medium.ttf", "Go-Bold.ttf",
		"Go-Italic.ttf", "Go-Medium-Italic.ttf", "Go-Bold-Italic.ttf")},
	{"train", "go-mono", 2, goFonts, plainFaces(
		"Go-Mono.ttf", "Go-Mono-Bold.ttf", "Go-Mono-Italic.ttf", "Go-Mono-Bold-Italic.ttf")},
	{"train", "dejavu-sans", 4, dejaVu, plainFaces(
		"DejaVuSans-ExtraLight.ttf", "DejaVuSans.ttf", "DejaVuSans-Bold.ttf",
		"DejaVuSans-Oblique.ttf", "DejaVuSans-BoldOblique.ttf")},
	{"train", "dejavu-serif", 4, dejaVu, plainFaces(
		"DejaVuSerif.ttf", "DejaVuSerif-Bold.ttf", "DejaVuSerif-Italic.ttf", "DejaVuSerif-BoldItalic.ttf")},
	{"train", "noto-sans", 2, noto, plainFaces("NotoSansJP-Regular.otf")},
	{"train", "latin-modern-sans", 3, latinModern, plainFaces(
		"lmsans10-regular.otf", "lmsans10-bold.otf", "lmsans10-oblique.otf", "lmsans10-boldoblique.otf")},
	{"train", "latin-modern-quotation", 2, latinModern, plainFaces(
		"lmsansquot8-regular.otf", "lmsansquot8-bold.otf", "lmsansquot8-oblique.otf", "lmsansquot8-boldoblique.otf")},
	{"train", "latin-modern-mono", 2, latinModern, plainFaces(
		"lmmono10-regular.otf", "lmmono10-italic.otf", "lmmonolt10-regular.otf",
		"lmmonolt10-bold.otf", "lmmonolt10-boldoblique.otf")},
	{"train", "liberation-serif", 4, liberation, plainFaces(
		"LiberationSerif-Regular.ttf", "LiberationSerif-Bold.ttf",
		"LiberationSerif-Italic.ttf", "LiberationSerif-BoldItalic.ttf")},
	{"train", "stix-text", 4, stix, plainFaces(
		"STIXTwoText-Regular.otf", "STIXTwoText-Medium.otf", "STIXTwoText-SemiBold.otf", "STIXTwoText-Bold.otf",
		"STIXTwoText-Italic.otf", "STIXTwoText-MediumItalic.otf", "STIXTwoText-SemiBoldItalic.otf",
		"STIXTwoText-BoldItalic.otf")},
	{"train", "latin-modern-script", 2, latinModern, []face{
		{"latinmodern-math.otf", script}, {"latinmodern-math.otf", boldScript}}},
	{"train", "stix-fraktur", 1, stix, []face{
		{"STIXTwoMath-Regular.otf", fraktur}, {"STIXTwoMath-Regular.otf", boldFraktur}}},
	{"train", "dejavu-double-struck", 1, dejaVu, []face{
		{"DejaVuSans.ttf", doubleStruck}, {"DejaVuSans-Bold.ttf", doubleStruck},
		{"DejaVuSans-Oblique.ttf", doubleStruck}, {"DejaVuSerif.ttf", doubleStruck}}},
	{"train", "noto-enclosed", 1, noto, []face{
		{"NotoSansJP-Regular.otf", circled}, {"NotoSansJP-Regular.otf", squared}}},

	{"test", "liberation-sans", 4, liberation, plainFaces(
		"LiberationSans-Regular.ttf", "LiberationSans-Bold.ttf",
		"LiberationSans-Italic.ttf", "LiberationSans-BoldItalic.ttf")},
	{"test", "liberation-mono", 2, liberation, plainFaces(
		"LiberationMono-Regular.ttf", "LiberationMono-Bold.ttf",
		"LiberationMono-Italic.ttf", "LiberationMono-BoldItalic.ttf")},
	{"test", "dejavu-mono", 2, dejaVu, plainFaces(
		"DejaVuSansMono.ttf", "DejaVuSansMono-Bold.ttf",
		"DejaVuSansMono-Oblique.ttf", "DejaVuSansMono-BoldOblique.ttf")},
	{"test", "tex-gyre", 4, dejaVu, []face{
		{"DejaVuMathTeXGyre.ttf", plain}, {"DejaVuMathTeXGyre.ttf", mathBold}}},
	{"test", "roboto", 5, roboto, plainFaces(
		"Roboto-Thin.ttf", "Roboto-Light.ttf", "Roboto-Regular.ttf", "Roboto-Medium.ttf", "Roboto-Bold.ttf",
		"Roboto-Black.ttf", "Roboto-LightItalic.ttf", "Roboto-Italic.ttf", "Roboto-MediumItalic.ttf",
		"Roboto-BoldItalic.ttf", "Roboto-BlackItalic.ttf")},
	{"test", "latin-modern-roman", 5, latinModern, plainFaces(
		"lmroman5-regular.otf", "lmroman10-regular.otf", "lmroman17-regular.otf", "lmromandemi10-regular.otf",
		"lmroman10-bold.otf", "lmroman10-italic.otf", "lmroman10-bolditalic.otf", "lmromanslant10-bold.otf",
		"lmromanunsl10-regular.otf")},
	{"test", "latin-modern-dunhill", 2, latinModern, plainFaces(
		"lmromandunh10-regular.otf", "lmromandunh10-oblique.otf")},
	{"test", "latin-modern-condensed", 3, latinModern, plainFaces(
		"lmsansdemicond10-regular.otf", "lmsansdemicond10-oblique.otf")},
	{"test", "stix-script", 2, stix, []face{
		{"STIXTwoMath-Regular.otf", script}, {"STIXTwoMath-Regular.otf", boldScript}}},
	{"test", "tex-gyre-script", 2, dejaVu, []face{
		{"DejaVuMathTeXGyre.ttf", script}, {"DejaVuMathTeXGyre.ttf", boldScript}}},
	{"test", "latin-modern-fraktur", 1, latinModern, []face{
		{"latinmodern-math.otf", fraktur}, {"latinmodern-math.otf", boldFraktur}}},
	{"test", "latin-modern-double-struck", 1, latinModern, []face{{"latinmodern-math.otf", doubleStruck}}},
	{"test", "stix-double-struck", 1, stix, []face{{"STIXTwoMath-Regular.otf", doubleStruck}}},
	{"test", "noto-inverse", 1, noto, []face{
		{"NotoSansJP-Regular.otf", inverseCircled}, {"NotoSansJP-Regular.otf", inverseSquared}}},
	{"test", "stix-enclosed", 1, stix, []face{{"STIXTwoMath-Regular.otf", circled}}},
}
