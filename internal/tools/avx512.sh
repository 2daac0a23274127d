#!/usr/bin/env bash
# Tests the AVX-512 kernels on a machine without AVX-512: boots Linux in the emulator Bochs, whose Skylake-X has it, and runs the tests of
# tensor/kernel and tensor/random there; `internal/tools/avx512.sh optest` also runs graph/optest on the host device. Prints their output, then PASS or FAIL.
#
# Debian packages: bochs bochs-term bochsbios vgabios isolinux syslinux-common genisoimage busybox-static cpio linux-image-cloud-amd64.
# KERNEL selects another kernel than the newest in /boot; cloud kernels boot in some 20 seconds, others in minutes. BOCHS selects another emulator than
# Debian's, which is built with a debugger: one built with --with-nogui --enable-x86-64 --enable-avx --enable-evex --enable-all-optimizations takes
# a third of the time, with DISPLAY_LIBRARY=nogui.
set -euo pipefail
cd "$(dirname "$0")/../.."
bochs=${BOCHS:-bochs}
kernel=${KERNEL:-$(ls -t /boot/vmlinuz-* 2>/dev/null | head -1)}

missing=()
for tool in "$bochs" genisoimage busybox cpio script; do
  command -v "$tool" >/dev/null || missing+=("$tool")
done
isolinux=/usr/lib/ISOLINUX/isolinux.bin loader=/usr/lib/syslinux/modules/bios/ldlinux.c32
for file in "$kernel" "$isolinux" "$loader" /usr/share/bochs/BIOS-bochs-latest /usr/share/bochs/VGABIOS-lgpl-latest; do
  test -f "$file" || missing+=("${file:-a kernel: set KERNEL}")
done
((${#missing[@]} == 0)) || { printf 'missing: %s\n' "${missing[@]}"; exit 2; }

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir"/{root/bin,iso}
export CGO_ENABLED=0
go test -c -o "$dir/root/bin/kernel.test" ./tensor/kernel
go test -c -o "$dir/root/bin/random.test" ./tensor/random
cp "$(command -v busybox)" "$dir/root/bin/busybox"
# Of most tests only the AVX-512 subtests run; those that compare instruction sets run whole. TestWinograd would take an hour and is
# left out: its products are among those whose bits are compared.
tests="run /bin/random.test -test.short -test.run TestAssembly|TestNormalGolden|TestRangesAgree
run /bin/kernel.test -test.run TestWide|TestUpdateBits|TestInstructionSet|/AVX-512 -test.skip TestWinograd"
if [[ ${1:-} == optest ]]; then
  go test -c -o "$dir/root/bin/optest.test" ./graph/optest
  tests+=$'\nrun /bin/optest.test -test.short -test.run TestHost'
fi
cat >"$dir/root/init" <<EOF
#!/bin/busybox sh
/bin/busybox mkdir -p /proc /dev /tmp
/bin/busybox mount -t proc none /proc
/bin/busybox mount -t devtmpfs none /dev
exec >/dev/ttyS0 2>&1
cd /tmp
run() {
  echo "RUN \$*"
  { "\$@" -test.v -test.timeout 0; echo \$? >status; } 2>&1 | /bin/busybox grep -v '^ *=== '
  echo "STATUS \$(/bin/busybox cat status)"
}
${tests//|/\\|}
echo FINISHED
/bin/busybox sleep 1
/bin/busybox poweroff -f
EOF
chmod +x "$dir/root/init"
(cd "$dir/root" && find . | cpio -o -H newc --quiet) >"$dir/iso/initrd"
cp "$kernel" "$dir/iso/linux"
cp "$isolinux" "$loader" "$dir/iso/"
# Bochs reports a wrong size of the compacted register state: the kernel must not use XSAVEC and XSAVES, or it turns AVX off. Without ACPI and PCI
# it does not search for devices for minutes.
cat >"$dir/iso/isolinux.cfg" <<EOF
DEFAULT tests
LABEL tests
KERNEL linux
INITRD initrd
APPEND console=ttyS0 loglevel=1 nokaslr mitigations=off nopti tsc=reliable clocksource=tsc lpj=1000000 no_timer_check nosmp noapic nolapic acpi=off pci=off noxsaves clearcpuid=xsavec,xsaves
EOF
genisoimage -quiet -o "$dir/boot.iso" -b isolinux.bin -c boot.cat -no-emul-boot -boot-load-size 4 -boot-info-table "$dir/iso"
cat >"$dir/bochsrc" <<EOF
megs: 1024
cpu: model=corei7_skylake_x, count=1, ips=100000000, reset_on_triple_fault=0
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/bochs/VGABIOS-lgpl-latest
ata0-master: type=cdrom, path=$dir/boot.iso, status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev=$dir/serial.txt
display_library: ${DISPLAY_LIBRARY:-term}
clock: sync=none
log: $dir/bochs.log
panic: action=fatal
speaker: enabled=0
EOF
debugger=""
if ("$bochs" --help 2>&1 || true) | grep -q -- -dbglog; then # Debian's, which also searches for a sound card
  echo c >"$dir/commands"
  debugger="-rc $dir/commands"
  echo "sound: waveoutdrv=dummy, waveindrv=dummy, midioutdrv=dummy" >>"$dir/bochsrc"
fi
touch "$dir/serial.txt"
tail -f "$dir/serial.txt" &
tail=$!
TERM=xterm script -qec "$bochs -q -f $dir/bochsrc $debugger" /dev/null </dev/null >"$dir/screen" 2>&1 || true
sleep 1
kill $tail

serial=$(tr -d '\r' <"$dir/serial.txt")
grep -q '^FINISHED' <<<"$serial" || { tail -n 5 "$dir/screen" "$dir/bochs.log"; echo "FAIL: the tests did not end"; exit 1; }
grep -E '^STATUS' <<<"$serial" | grep -qv 'STATUS 0$' && { echo "FAIL"; exit 1; }
grep -q 'SKIP: .*/AVX-512' <<<"$serial" && { echo "FAIL: AVX-512 was not available"; exit 1; }
echo "PASS: $(grep -c 'PASS: .*/AVX-512 ' <<<"$serial") tests with AVX-512"
