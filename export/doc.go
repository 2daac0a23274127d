// Package export writes runs in the formats of other programs: ONNX, Zarr for ArviZ and xarray,
// NumPy's NPZ, safetensors with PyTorch's names, TensorBoard's event files, and a model card. Files
// are written whole or not at all; directories must be new or empty. docs/export.md describes the
// formats.
package export
