module github.com/pollen-ml/pollen/cuda/kernels/generate

go 1.26
