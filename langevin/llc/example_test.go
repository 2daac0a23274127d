package llc_test

import (
	"context"
	"fmt"

	"github.com/pollen-ml/pollen/langevin/llc"
	"github.com/pollen-ml/pollen/langevin/llc/known"
	"github.com/pollen-ml/pollen/tensor"
)

// The coefficient of a linear regression, which is half the number of its weights.
func ExampleEstimate() {
	device := tensor.NewHost(0)
	defer device.Close()
	estimation, err := llc.Estimate(context.Background(), device, known.LinearRegression(400, 8), llc.Options{Localization: 1, Steps: 1200})
	if err != nil {
		panic(err)
	}
	verdict := estimation.Verdict()
	fmt.Printf("%d weights: %.0f, accepted: %v\n", estimation.Weights, float64(verdict.Lambda.Value), verdict.Accepted)
	// Output:
	// 8 weights: 4, accepted: true
}
