#!/usr/bin/env bash
# Makes the files of a release in the folder RELEASE_FILES (default: target/release-files): infra/README.md, "A release".
#
#   infra/release.sh command [TARGET]        builds `ripple` and packs it; TARGET is Rust's name of a platform
#   infra/release.sh pack BINARY [TARGET]    an archive, a wheel and an npm package of a built `ripple`
#   infra/release.sh lambda [ARCH...]        a zip of each function (default: arm64 x86_64)
#   infra/release.sh sums                    npm's main package, the bill of materials, and the checksums of all files
#
# Needs: Rust and Python 3.11; for Linux `cargo-zigbuild` and `ziglang`, and for Lambda `cargo-lambda` and `ziglang`, of PyPI.
set -euo pipefail
cd "$(dirname "$0")/.."

out=${RELEASE_FILES:-target/release-files}
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
    *) echo "there is no release for $1" >&2 && exit 2 ;;
  esac
}

command_for() {
  local target=$1
  platform "$target" >/dev/null
  case $target in
    *-linux-gnu) cargo zigbuild --locked --release --package cli --target "$target.$glibc" ;;
    *) cargo build --locked --release --package cli --target "$target" ;;
  esac
  pack "target/$target/release/ripple" "$target"
}

pack() {
  local binary=$1 target=$2 tag
  tag=$(platform "$target")
  tar --create --gzip --file "$out/ripple-$version-$target.tar.gz" \
    --directory "$(dirname "$binary")" "$(basename "$binary")" --directory "$PWD" LICENSE-APACHE LICENSE-MIT
  python3 infra/release/wheel.py "$binary" "$version" "$tag" "$out"
  python3 infra/release/npm.py "$version" "$out" "$binary" "$target"
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
  python3 infra/release/npm.py "$version" "$out"
  python3 infra/release/sbom.py >"$out/ripple-$version.cdx.json"
  (cd "$out" && rm -f SHA256SUMS && sha256sum -- * >SHA256SUMS && cat SHA256SUMS)
}

host() { rustc -vV | sed -n 's/^host: //p'; }

case ${1:-} in
  command) command_for "${2:-$(host)}" ;;
  pack) pack "${2:?the path of a built ripple}" "${3:-$(host)}" ;;
  lambda)
    shift
    [[ $# -gt 0 ]] || set -- arm64 x86_64
    for arch in "$@"; do lambda_for "$arch"; done
    ;;
  sums) sums ;;
  *) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
esac
