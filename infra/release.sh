#!/usr/bin/env bash
# Makes the files of a release in target/release-files: infra/README.md, "A release".
#
#   infra/release.sh command [TARGET]   an archive and a wheel of `ripple`; TARGET is Rust's name of a platform
#   infra/release.sh lambda [ARCH...]   a zip of each function (default: arm64 x86_64)
#   infra/release.sh sums               the bill of materials, and the checksums of all files
#
# Needs: Rust and Python 3.11; for Linux `cargo-zigbuild` and `ziglang`, and for Lambda `cargo-lambda` and `ziglang`, of PyPI.
set -euo pipefail
cd "$(dirname "$0")/.."

out=target/release-files
mkdir -p "$out"
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)

# The oldest glibc that a program for Linux runs on: that of Amazon Linux 2 is 2.26, of Amazon Linux 2023 2.34.
glibc=2.17

# A wheel's platform for one of Rust's targets.
platform() {
  case $1 in
    x86_64-unknown-linux-gnu) echo manylinux_2_17_x86_64 ;;
    aarch64-unknown-linux-gnu) echo manylinux_2_17_aarch64 ;;
    x86_64-apple-darwin) echo macosx_10_12_x86_64 ;;
    aarch64-apple-darwin) echo macosx_11_0_arm64 ;;
    x86_64-pc-windows-msvc) echo win_amd64 ;;
    *) echo "no wheel is known for $1" >&2 && exit 2 ;;
  esac
}

command_for() {
  local target=$1 program=ripple tag built
  tag=$(platform "$target")
  case $target in
    *-linux-gnu) cargo zigbuild --locked --release --package cli --target "$target.$glibc" ;;
    *) cargo build --locked --release --package cli --target "$target" ;;
  esac
  [[ $target != *-windows-* ]] || program=ripple.exe
  built=target/$target/release
  tar --create --gzip --file "$out/ripple-$version-$target.tar.gz" \
    --directory "$built" "$program" --directory "$PWD" LICENSE-APACHE LICENSE-MIT
  python3 infra/release/wheel.py "$built/$program" "$version" "$tag" "$out"
}

# `sam` and the templates build their own; these are for other tools, as the file `bootstrap` of the runtime provided.al2023.
lambda_for() {
  local arch=$1 function
  [[ $arch == arm64 || $arch == x86_64 ]] || { echo "Lambda has arm64 and x86_64, and no $arch" >&2 && exit 2; }
  cargo lambda build --locked --release "--${arch/_/-}" --output-format zip --package functions
  for function in aggregate combined propagate sweep; do
    cp "target/lambda/$function/bootstrap.zip" "$out/ripple-$version-lambda-$function-$arch.zip"
  done
}

sums() {
  python3 infra/release/sbom.py >"$out/ripple-$version.cdx.json"
  (cd "$out" && rm -f SHA256SUMS && sha256sum -- * >SHA256SUMS && cat SHA256SUMS)
}

case ${1:-} in
  command) command_for "${2:-$(rustc -vV | sed -n 's/^host: //p')}" ;;
  lambda)
    shift
    [[ $# -gt 0 ]] || set -- arm64 x86_64
    for arch in "$@"; do lambda_for "$arch"; done
    ;;
  sums) sums ;;
  *) sed -n '2,8s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
esac
