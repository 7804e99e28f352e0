#!/bin/sh
# Installs Sightline @VERSION@: downloads the archive of this platform, checks its
# SHA-256 checksum, and copies the programs to ~/.local/bin.
#
# SIGHTLINE_INSTALL_DIR selects another directory, SIGHTLINE_DOWNLOADS another address
# of the archives.
set -eu

version=@VERSION@
downloads=${SIGHTLINE_DOWNLOADS:-@REPOSITORY@/releases/download/v$version}
directory=${SIGHTLINE_INSTALL_DIR:-${HOME:?}/.local/bin}
checksums='
@CHECKSUMS@
'

fail() {
  echo "install.sh: $1" >&2
  exit 1
}

# Prints the targets whose program runs here, best first.
targets() {
  case $(uname -sm) in
    "Linux x86_64") echo x86_64-unknown-linux-musl x86_64-unknown-linux-gnu ;;
    "Linux aarch64") echo aarch64-unknown-linux-gnu ;;
    "Darwin x86_64") echo x86_64-apple-darwin ;;
    "Darwin arm64") echo aarch64-apple-darwin ;;
  esac
}

sha256() {
  if command -v sha256sum >/dev/null; then
    sha256sum "$1"
  else
    shasum -a 256 "$1"
  fi | cut -d ' ' -f 1
}

download() {
  if command -v curl >/dev/null; then
    curl --fail --silent --show-error --location --output "$2" "$1"
  else
    wget --quiet --output-document "$2" "$1"
  fi || fail "cannot download $1"
}

# The script runs only if it was downloaded completely.
main() {
  target=
  for candidate in $(targets); do
    expected=$(echo "$checksums" | sed -n "s/^$candidate=//p")
    if [ -n "$expected" ]; then
      target=$candidate
      break
    fi
  done
  [ -n "$target" ] || fail "version $version has no program for $(uname -sm); build it from source"

  temporary=$(mktemp -d)
  trap 'rm -rf "$temporary"' EXIT
  name=sightline-v$version-$target
  download "$downloads/$name.tar.gz" "$temporary/archive.tar.gz"
  found=$(sha256 "$temporary/archive.tar.gz")
  [ "$found" = "$expected" ] || fail "the checksum of $name.tar.gz is $found instead of $expected"
  tar -xzf "$temporary/archive.tar.gz" -C "$temporary"

  mkdir -p "$directory"
  # A running server keeps the replaced file.
  for program in sightline-gateway sightline; do
    cp "$temporary/$name/$program" "$directory/.$program.new"
    mv "$directory/.$program.new" "$directory/$program"
  done
  echo "installed $directory/sightline ($version)"
  case :$PATH: in
    *:"$directory":*) ;;
    *) echo "add $directory to your PATH" ;;
  esac
}

main "$@"
