# What a node runs. A line is joined to the next one with "; ", since a login shell may take no line breaks.
# LIMIT_S: seconds until it is ended. RUN: the command that measures, in quotes, with $0 as the folder for its files.
# BEGIN: the line after which the archive begins.
d=$(mktemp -d) || exit 1
trap 'rm -rf "$d"' EXIT
mkdir "$d/out" "$d/tmp"
limit=$(command -v timeout >/dev/null && echo timeout -k 10 LIMIT_S)
OVERHEAD_SCRATCH="$d/tmp" $limit sh -c RUN "$d/out" </dev/null >/dev/null 2>"$d/errors"
code=$?
tail -c 2000 "$d/errors" >&2
echo "BEGIN"
# tar of macOS: no files of attributes
COPYFILE_DISABLE=1 tar -C "$d/out" -cf - . && exit $code
