#!/usr/bin/env bash
# Tests the AVX-512 kernels where no processor has AVX-512: boots Linux in the emulator Bochs, whose Skylake-X has it, and runs the tests of
# tensor/kernel and tensor/random there; `tools/avx512.sh optest` also graph/optest's of the host. Prints what they print and PASS or FAIL.
#
# Debian packages: bochs bochs-term bochsbios vgabios isolinux syslinux-common genisoimage busybox-static cpio linux-image-cloud-amd64.
# KERNEL is another kernel than the newest in /boot; those of the cloud boot in some 20 seconds, others in minutes. BOCHS is another emulator than
# Debian's, which is built with a debugger: one with --with-nogui --enable-x86-64 --enable-avx --enable-evex --enable-all-optimizations takes a
# third of the time, with DISPLAY_LIBRARY=nogui.
set -euo pipefail
cd "$(dirname "$0")/.."
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

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder"/{root/bin,iso}
export CGO_ENABLED=0
go test -c -o "$folder/root/bin/kernel.test" ./tensor/kernel
go test -c -o "$folder/root/bin/random.test" ./tensor/random
cp "$(command -v busybox)" "$folder/root/bin/busybox"
# Of most tests only the subtests named after it; those that compare instruction sets need all of them. TestWinograd, which would take an hour, is
# left out: its products are among those whose bits are compared.
tests="run /bin/random.test -test.short -test.run TestAssembly|TestNormalGolden|TestRangesAgree
run /bin/kernel.test -test.run TestWide|TestUpdateBits|TestInstructionSet|/AVX-512 -test.skip TestWinograd"
if [[ ${1:-} == optest ]]; then
  go test -c -o "$folder/root/bin/optest.test" ./graph/optest
  tests+=$'\nrun /bin/optest.test -test.short -test.run TestHost'
fi
cat >"$folder/root/init" <<EOF
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
chmod +x "$folder/root/init"
(cd "$folder/root" && find . | cpio -o -H newc --quiet) >"$folder/iso/initrd"
cp "$kernel" "$folder/iso/linux"
cp "$isolinux" "$loader" "$folder/iso/"
# Bochs gives the size of the registers without gaps wrongly: the kernel must not use XSAVEC and XSAVES, or it turns AVX off. Without ACPI and PCI
# it does not look for devices for minutes.
cat >"$folder/iso/isolinux.cfg" <<EOF
DEFAULT tests
LABEL tests
KERNEL linux
INITRD initrd
APPEND console=ttyS0 loglevel=1 nokaslr mitigations=off nopti tsc=reliable clocksource=tsc lpj=1000000 no_timer_check nosmp noapic nolapic acpi=off pci=off noxsaves clearcpuid=xsavec,xsaves
EOF
genisoimage -quiet -o "$folder/boot.iso" -b isolinux.bin -c boot.cat -no-emul-boot -boot-load-size 4 -boot-info-table "$folder/iso"
cat >"$folder/bochsrc" <<EOF
megs: 1024
cpu: model=corei7_skylake_x, count=1, ips=100000000, reset_on_triple_fault=0
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/bochs/VGABIOS-lgpl-latest
ata0-master: type=cdrom, path=$folder/boot.iso, status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev=$folder/serial.txt
display_library: ${DISPLAY_LIBRARY:-term}
clock: sync=none
log: $folder/bochs.log
panic: action=fatal
speaker: enabled=0
EOF
debugger=""
if ("$bochs" --help 2>&1 || true) | grep -q -- -dbglog; then # Debian's, which also looks for a sound card
  echo c >"$folder/commands"
  debugger="-rc $folder/commands"
  echo "sound: waveoutdrv=dummy, waveindrv=dummy, midioutdrv=dummy" >>"$folder/bochsrc"
fi
touch "$folder/serial.txt"
tail -f "$folder/serial.txt" &
tail=$!
TERM=xterm script -qec "$bochs -q -f $folder/bochsrc $debugger" /dev/null </dev/null >"$folder/screen" 2>&1 || true
sleep 1
kill $tail

serial=$(tr -d '\r' <"$folder/serial.txt")
grep -q '^FINISHED' <<<"$serial" || { tail -n 5 "$folder/screen" "$folder/bochs.log"; echo "FAIL: the tests did not end"; exit 1; }
grep -E '^STATUS' <<<"$serial" | grep -qv 'STATUS 0$' && { echo "FAIL"; exit 1; }
grep -q 'SKIP: .*/AVX-512' <<<"$serial" && { echo "FAIL: there was no AVX-512"; exit 1; }
echo "PASS: $(grep -c 'PASS: .*/AVX-512 ' <<<"$serial") tests with AVX-512"
