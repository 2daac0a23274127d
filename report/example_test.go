package report_test

import (
	"fmt"
	"os"

	"github.com/pollen-ml/pollen/report"
)

// A table on the terminal; it can also go into a Section of a page or, with WriteMarkdown, into a document.
func Example() {
	table := report.NewTable("method", report.Column{Title: "NLL", Format: "%.4f"}, report.Column{Title: "AUROC", Format: "%.3f"})
	if err := table.Add("SGD", 0.0313, 0.963); err != nil {
		fmt.Println(err)
		return
	}
	if err := table.Add("SGLD average", 0.0351, 0.974); err != nil {
		fmt.Println(err)
		return
	}
	if err := table.WriteText(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// method           NLL  AUROC
	// ---------------------------
	// SGD           0.0313  0.963
	// SGLD average  0.0351  0.974
}
