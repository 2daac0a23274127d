// Package parquet reads columns of Parquet files (https://parquet.apache.org/docs/file-format):
// integers, text and bytes, one value for each row, at the top level or in a struct.
//
// Files may be malicious. Nothing is allocated because a file announces it: metadata and pages take
// memory in proportion to the bytes that are there, and compressed pages may grow by a bounded
// factor. Only the page that is being read is in memory.
//
// Pages of both versions are read, plain or with a dictionary, without compression or compressed by
// Snappy, gzip or zstd. Other encodings and compressions are errors that name them.
//
// Libraries for Parquet trust the sizes that a file announces: in parquet-go v0.26.0, a file of 34
// bytes can end the process by an allocation of 189 GB. This is why Pollen has a reader of its own.
package parquet
