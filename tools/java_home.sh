#!/bin/sh
# Prints the home folder of a Java that Spark can use: version 17 or newer, with all modules.
#
# Looks at JAVA_HOME, then PATH, then the folders where Linux and macOS keep them. Where there is none, it installs one
# with apt, or says what to install.
set -eu

# Prints the home of the command $1, if Spark can use it. The vector module is the one that small runtimes leave out.
usable_home() {
    properties=$("$1" --add-modules=jdk.incubator.vector -XshowSettings:properties -version 2>&1) || return 1
    property() { printf '%s\n' "$properties" | sed -n "s/^ *$1 = //p"; }
    [ "$(property java.specification.version)" -ge 17 ] 2>/dev/null || return 1
    property java.home
}

find_home() {
    for java in ${JAVA_HOME:+"$JAVA_HOME/bin/java"} java \
        /usr/lib/jvm/*/bin/java /Library/Java/JavaVirtualMachines/*/Contents/Home/bin/java; do
        usable_home "$java" && return
    done
    return 1
}

find_home && exit
if "$(dirname "$0")"/apt_install.sh openjdk-17-jre-headless openjdk-21-jre-headless openjdk-25-jre-headless; then
    find_home && exit
fi
cat >&2 <<'END'
Spark needs Java 17 or newer, and none was found in JAVA_HOME, on PATH or in the usual folders.
  Debian, Ubuntu    apt-get install openjdk-17-jre-headless      (or 21; as root)
  Fedora, RHEL      dnf install java-21-openjdk-headless
  macOS             brew install openjdk@21, then set JAVA_HOME to what `brew --prefix openjdk@21` prints
  elsewhere         unpack any JDK from 17 on and set JAVA_HOME to its folder
Only Spark needs it. Everything else works now; its tests: make quick
END
exit 1
