package serve

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
)

// pageScript returns the path of node, which the test is skipped without, and the page's script.
func pageScript(t *testing.T) (node, script string) {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip(err)
	}
	content, err := pageFiles.ReadFile("page/page.js")
	if err != nil {
		t.Fatal(err)
	}
	return node, string(content)
}

// TestPageModels: the page lets the user choose among several models, and asks the chosen one.
func TestPageModels(t *testing.T) {
	node, script := pageScript(t)
	const browser = `const any = new Proxy(function () {}, { get: (_, key) => (key === Symbol.toPrimitive ? () => "" : any), set: () => true, apply: () => any });
const chosen = {}, options = [], requests = [];
const model = { append: (option) => options.push(option), addEventListener: (_, call) => { chosen.call = call; } };
const choice = { hidden: true };
globalThis.document = new Proxy(any, { get: (_, key) => key === "getElementById" ? (id) => ({ model, choice })[id] || any
  : key === "createElement" ? () => ({ classList: any, append: () => {} }) : any });
globalThis.window = any;
globalThis.fetch = async (path) => {
  requests.push(path);
  return { status: 200, ok: true, json: async () => path === "v2/models" ? { models }
    : path.startsWith("run") ? { name: "x", classNames: ["a"], maxImages: 4 } : { answers: [] } };
};
`
	const use = `
const image = () => predict([new Blob(["x"])]);
image().then(async () => {
  if (options.length > 0) {
    chosen.call({ target: options[0] });
    await image();
  }
  const shown = options.map((option) => option.textContent + (option.selected ? "*" : ""));
  console.log([choice.hidden, ...shown, ...requests].join("|"));
});
`
	for _, c := range []struct{ models, want string }{
		{`[{name: "x", version: "1"}]`, "true|v2/models|run?|predict?probabilities=true&"},
		{`[{name: "x", version: "1"}, {name: "y", version: "1"}, {name: "x", version: "b c"}]`,
			"false|x, version 1|y|x, version b c*|v2/models|run?model=x&version=b+c|predict?probabilities=true&model=x&version=b+c" +
				"|run?model=x&version=1|predict?probabilities=true&model=x&version=1"},
	} {
		command := exec.CommandContext(t.Context(), node, "-")
		command.Stdin = strings.NewReader(browser + "const models = " + c.models + ";\n" + script + use)
		got, err := command.CombinedOutput()
		if err != nil || strings.TrimSpace(string(got)) != c.want {
			t.Errorf("%s: got %s, want %s (%v)", c.models, got, c.want, err)
		}
	}
}

// TestPageFiles: the page shows each answer with its file; a file of arrays has several answers.
func TestPageFiles(t *testing.T) {
	node, script := pageScript(t)
	// A document that has everything, and a server that cannot be reached.
	const browser = `const any = new Proxy(function () {}, { get: (_, key) => (key === Symbol.toPrimitive ? () => "" : any), set: () => true, apply: () => any });
globalThis.document = any; globalThis.window = any; globalThis.fetch = () => Promise.reject(new Error("no server"));
`
	for _, c := range []struct{ files, answers, want string }{
		{"a.png b.png", "a.png b.png", "0 1"},
		{"digits.npy cat.png", "digits.npy[0] digits.npy[1] digits.npy[2] cat.png", "0 0 0 1"},
		{"cat.png digits.npy dog.png", "cat.png digits.npy[0] digits.npy[1] dog.png", "0 1 1 2"},
		{"x.npz x.npz cat.png", "x.npz[0] x.npz[1] x.npz[0] cat.png", "0 0 1 2"},
		{"x.npz", "x.npz:train_images[0] x.npz:train_images[1] x.npz:test_images[0]", "0 0 0"},
		{"x x.npy", "x x.npy[0] x.npy[1]", "0 1 1"},
	} {
		list := func(key, names string) string {
			var all []map[string]string
			for name := range strings.FieldsSeq(names) {
				all = append(all, map[string]string{key: name})
			}
			text, err := json.Marshal(all)
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		files := list("name", c.files)
		command := exec.CommandContext(t.Context(), node, "-")
		command.Stdin = strings.NewReader(browser + script + "\nconst files = " + files + ";\n" +
			"console.log(filesOf(files, " + list("file", c.answers) + ").map((file) => files.indexOf(file)).join(' '));\n")
		got, err := command.CombinedOutput()
		if err != nil || strings.TrimSpace(string(got)) != c.want {
			t.Errorf("%s of %s: got %s, want %s (%v)", c.answers, c.files, got, c.want, err)
		}
	}
}
