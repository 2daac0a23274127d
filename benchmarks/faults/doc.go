// Command faults breaks runs in every way that machines do, and checks that no result is lost or
// silently changed:
//
//	go run ./benchmarks/faults              # all of it, some minutes
//	go run ./benchmarks/faults kills flips  # some of it, by the names below
//
// The stages are:
//
//   - kills ends training processes with SIGKILL at random moments, again and again, and compares
//     the resumed runs' results with a run that was never stopped, byte for byte.
//   - flips flips one bit of one file: reading must give the same results, or an error that names
//     the file.
//   - disks fails, tears and delays each call that writes.
//   - full fills a small disk.
//   - readonly removes write permission.
//   - writers starts two processes in one directory.
//   - many keeps 10 000 samples.
//   - cost measures the time that checkpoints and checksums take.
//
// Its test is the short form of all that.
//
// Kills and flips are counted as they are made, and Ctrl-C ends them with the counts so far: 200
// kills can be made in parts, by method and with a seed of each part,
//
//	go run ./benchmarks/faults -victims sghmc,swag -kills 20 -seed 7 kills
package main
