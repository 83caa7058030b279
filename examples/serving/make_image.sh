#!/bin/sh
# make_image.sh own|intel FOLDER [BUILD]: the files of an image with rushlight-serve. It builds the program, unless BUILD
# names a folder with bin/rushlight-serve and lib/ that has been built.
set -eu
libraries=$1 image=$2 built=${3:-}
if [ -z "$built" ]; then
  python3 -m venv /tmp/build-venv
  /tmp/build-venv/bin/pip install --quiet "pip>=25.1"
  /tmp/build-venv/bin/pip install --quiet --group build
  options=
  [ "$libraries" = intel ] || options="-DRUSHLIGHT_BLAS=none -DRUSHLIGHT_ONEDNN=off -DRUSHLIGHT_TBB=off"
  # shellcheck disable=SC2086
  PATH=/tmp/build-venv/bin:$PATH cmake -S . -B /tmp/build-image -G Ninja -DPython_EXECUTABLE=/tmp/build-venv/bin/python \
    -DRUSHLIGHT_INSTRUCTION_SETS=all -DRUSHLIGHT_GLOO=off -DRUSHLIGHT_SERVE=on -DRUSHLIGHT_SERVE_TLS=on \
    -DRUSHLIGHT_PACKAGE_DIR=/tmp/build-image/package $options
  /tmp/build-venv/bin/ninja -C /tmp/build-image rushlight_serve
  built=/tmp/build-image/package
fi
mkdir -p "$image/usr/bin" "$image/usr/lib" "$image/models"
cp "$built/bin/rushlight-serve" "$image/usr/bin/"
# It looks for its library in ../lib, and what that needs comes beside it.
ldd "$built/bin/rushlight-serve" | awk '/=> \//{print $3} /^[ \t]*\//{print $1}' | while read -r file; do
  case $file in
    */ld-linux*) mkdir -p "$image$(dirname "$file")" && cp -L "$file" "$image$file" ;;
    *) cp -L "$file" "$image/usr/lib/" ;;
  esac
done
for loaded_when_used in "$built"/lib/libdnnl.so.3; do
  [ ! -e "$loaded_when_used" ] || cp -L "$loaded_when_used" "$image/usr/lib/"
done
strip --strip-unneeded "$image"/usr/lib/*.so* "$image/usr/bin/rushlight-serve"
chmod -R a+rX "$image"
find "$image" -type f -printf '%s\n' | awk '{n += $1} END {printf "%.1f MB in %d files\n", n / 1e6, NR}'
