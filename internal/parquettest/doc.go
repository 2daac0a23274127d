// Package parquettest writes small Parquet files for tests, in the layouts that other programs
// write.
package parquettest
