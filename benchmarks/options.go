package main

// options are the flags that all commands share.
type options struct {
	rounds  int
	threads int
	json    string
	python  string
	quiet   bool
	model   string // the GPU whose model predicts
}
