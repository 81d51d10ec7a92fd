#!/bin/sh
# Installs the first of the named packages that this Debian or Ubuntu offers.
#
# Needs root, or a sudo that asks for no password. Where that is missing, or apt is, or APT=no is set, it fails and
# says nothing: the caller knows what the packages are for and tells the user.
set -eu

[ "${APT:-yes}" != no ] || exit 1
command -v apt-get >/dev/null || exit 1
as_root=
if [ "$(id -u)" -ne 0 ]; then
    sudo -n true 2>/dev/null || exit 1
    as_root='sudo -n'
fi

# What apt says is shown only where it fails.
quietly() {
    said=$($as_root env DEBIAN_FRONTEND=noninteractive "$@" 2>&1) || {
        printf '%s\n' "$said" >&2
        return 1
    }
}

quietly apt-get update -qq || true # one source of many may be down: what counts is whether the install works
for package; do
    if apt-cache show "$package" >/dev/null 2>&1; then
        echo "Installing $package with apt." >&2
        quietly apt-get install -qq --yes --no-install-recommends "$package"
        exit
    fi
done
exit 1
