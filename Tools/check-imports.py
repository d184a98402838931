#!/usr/bin/env python3
"""Checks that imports follow the module order of docs/design.md, and that directories have an order.

usage: check-imports.py [PACKAGE]

Each directory below Sources is a module, as are the Swift files in policies/ and in Tools/. A
module that is missing in the table and an import that its row does not allow are errors, reported
with file, line and the allowed imports; the exit status is then 1. The directories of a module must
not refer to each other in a cycle: a directory refers to another if it names a type declared there.
"""

import pathlib
import re
import sys

# Allowed in every module: parts of the Swift toolchain without calls to libc.
EVERYWHERE = {"Swift", "Synchronization"}

LIBC = {"Glibc", "Musl", "CLinux"}
# The libraries of Codecs, and those used by one other module each.
CODEC_LIBRARIES = {
    "CArchive", "CBzip2", "CCrypto", "CLzma", "CSodium", "CYAML", "CZlib", "CZstd",
}
C_LIBRARIES = CODEC_LIBRARIES | {"CCurl", "CFuse", "CSQLite"}
OWN_C = {"CBlake2b"}
EMBEDDED = {"CEmbedded"}

VALUES = {"Codecs", "SandboxModel", "SystemIO"}
# The dependencies of a module that works on scanned devices.
SCANNED = VALUES | {"ArchiveStore", "DatabaseCapture", "DeviceDiscovery", "PolicyEngine"}

# Each module with the modules that it may import. A row never names a module of a later row.
ALLOWED = {
    "SystemIO": LIBC,
    "Codecs": CODEC_LIBRARIES | OWN_C | {"Glibc"},
    "SandboxModel": {"Codecs", "SystemIO"},
    "PolicyEngine": {"Codecs", "SandboxModel"},
    "BuiltinPolicies": EMBEDDED,
    "RecoverScript": EMBEDDED,
    "ArchiveStore": {"Codecs", "RecoverScript", "SystemIO"},
    "DatabaseCapture": {"Codecs", "SystemIO"},
    "SampleDevice": {"Codecs", "SandboxModel", "SystemIO"},
    "DeviceDiscovery": VALUES,
    "AppPackages": VALUES | {"CArchive", "DeviceDiscovery"},
    "SnapshotQueries": VALUES | {"ArchiveStore", "DatabaseCapture", "PolicyEngine"},
    "Retention": {"ArchiveStore", "Codecs", "SystemIO"},
    "DeviceScan": SCANNED,
    "DeviceTransaction": SCANNED | {"DeviceScan"},
    "Migration": SCANNED | {"AppPackages", "DeviceScan", "DeviceTransaction"},
    "Backup": SCANNED | {"DeviceScan", "DeviceTransaction"},
    "InterApp": VALUES | {"ArchiveStore", "DeviceTransaction"},
    "Audit": VALUES | {"DeviceDiscovery", "DeviceScan", "InterApp", "PolicyEngine"},
    "Purge": SCANNED | {"DeviceScan", "DeviceTransaction"},
    "Restore": SCANNED | {"DeviceScan", "DeviceTransaction"},
    "AppUpdate": SCANNED | {"AppPackages", "DeviceScan", "DeviceTransaction", "Restore"},
    "Interchange": VALUES | {"ArchiveStore", "CSQLite", "DatabaseCapture", "DeviceDiscovery"},
    "RemoteStorage": {"ArchiveStore", "CCurl", "Codecs", "SystemIO"},
    "Mount": {"ArchiveStore", "CFuse", "Codecs", "SystemIO"},
    "Scenario": VALUES | {"PolicyEngine"},
    "ScenarioRunner": SCANNED | {
        "AppPackages", "AppUpdate", "Audit", "Backup", "DeviceScan", "DeviceTransaction",
        "InterApp", "Purge", "Restore", "SampleDevice", "Scenario",
    },
    "SandboxCommands": SCANNED | {
        "AppPackages", "AppUpdate", "ArgumentParser", "Audit", "Backup", "BuiltinPolicies",
        "DeviceScan", "DeviceTransaction", "FoundationEssentials", "InterApp", "Interchange",
        "Migration", "Mount", "Purge", "RemoteStorage", "Restore", "Retention", "SampleDevice",
        "Scenario", "ScenarioRunner", "SnapshotQueries",
    },
    "sandboxctl": {"SandboxCommands"},
}

# Modules outside Sources, next to the files that they embed.
OUTSIDE = {"policies": "BuiltinPolicies", "Tools": "RecoverScript"}

# C modules, which import nothing.
OF_C = C_LIBRARIES | OWN_C | EMBEDDED | {"CLinux", "CLoader"}

IMPORT = re.compile(
    r"""^\s*
    (?:@\w+(?:\([^)]*\))?\s+)*                                   # @_exported, @preconcurrency
    (?:(?:public|package|internal|private|fileprivate|open)\s+)?
    (?:@\w+(?:\([^)]*\))?\s+)*
    import\s+
    (?:(?:struct|class|enum|protocol|typealias|func|let|var|macro)\s+)?
    `?(\w+)`?
    """,
    re.VERBOSE,
)
# C functions can be called by symbol without an import.
BY_SYMBOL = re.compile(r"@(_silgen_name|_extern)\b")


def without_comments(text):
    """Returns the text with comments and strings replaced by spaces, line by line."""

    def blank(match):
        return re.sub(r"[^\n]", " ", match.group())

    pattern = r'"""(?:.|\n)*?"""|"(?:\\.|[^"\\\n])*"|/\*(?:.|\n)*?\*/|//[^\n]*'
    return re.sub(pattern, blank, text)


def imports(text):
    """Yields each import of a source text with its line."""
    for number, line in enumerate(without_comments(text).split("\n"), start=1):
        for part in line.split(";"):
            found = IMPORT.match(part)
            if found:
                yield number, found.group(1)


def module_directories(package):
    """Yields each module's name with its directory."""
    sources = package / "Sources"
    if sources.is_dir():
        for directory in sorted(sources.iterdir()):
            if directory.is_dir():
                yield directory.name, directory
    for name, module in OUTSIDE.items():
        if any((package / name).rglob("*.swift")):
            yield module, package / name


TYPE = re.compile(
    r"^(?:@\w+(?:\([^)]*\))?\s+)*(?P<access>(?:(?:public|open|package|internal|fileprivate|private|"
    r"final|indirect|nonisolated)\s+)*)(?:struct|class|enum|protocol|actor|typealias)\s+(?P<name>\w+)",
    re.MULTILINE,
)


def references(files, module):
    """Returns for each directory of a module the directories whose types it names, with one example.

    Files outside any directory count as a directory named "".
    """
    texts, owners = {}, {}
    for file in files:
        directory = file.relative_to(module).parts[0] if file.parent != module else ""
        texts.setdefault(directory, []).append((file, without_comments(file.read_text(encoding="utf-8"))))
    for directory, sources in texts.items():
        for _, text in sources:
            for found in TYPE.finditer(text):
                if "private" not in found["access"]:
                    owners.setdefault(found["name"], set()).add(directory)
    edges = {directory: {} for directory in texts}
    for directory, sources in texts.items():
        for file, text in sources:
            for word in set(re.findall(r"\b[A-Z]\w*", text)):
                owner = owners.get(word, ())
                if len(owner) == 1 and directory not in owner:
                    edges[directory].setdefault(next(iter(owner)), (file, word))
    return edges


def cycles(edges):
    """Yields each pair of directories that reach each other, with the example of the direct reference."""
    reached = {}
    for start in edges:
        seen, queue = set(), list(edges[start])
        while queue:
            directory = queue.pop()
            if directory not in seen:
                seen.add(directory)
                queue += edges[directory]
        reached[start] = seen
    for directory in sorted(edges):
        for other, (file, word) in sorted(edges[directory].items()):
            if directory in reached[other]:
                yield directory, other, file, word


def problems(package):
    """Yields each problem of a package as one line."""
    for module, directory in module_directories(package):
        files = sorted(directory.rglob("*.swift"))
        if module in OF_C:
            for file in files:
                yield f"{file}:1: Swift in the C module {module}"
            continue
        if module not in ALLOWED:
            known = ", ".join(sorted(ALLOWED))
            yield f"{directory}:1: the module {module} is not in the table of Tools/check-imports.py ({known})"
            continue
        for source, target, file, word in cycles(references(files, directory)):
            yield (
                f"{file}:1: a cycle of directories in {module}: '{source or '.'}' refers to "
                f"'{target or '.'}' ({word})"
            )
        allowed = ALLOWED[module] | EVERYWHERE | {module}
        for file in files:
            text = file.read_text(encoding="utf-8")
            for line, imported in imports(text):
                if imported not in allowed:
                    names = ", ".join(sorted(ALLOWED[module] | EVERYWHERE))
                    yield f"{file}:{line}: {module} must not import {imported}; it may import: {names}"
            for line, content in enumerate(without_comments(text).split("\n"), start=1):
                if BY_SYMBOL.search(content) and module != "SystemIO":
                    yield f"{file}:{line}: {module} must not call C by a symbol; only SystemIO calls libc"


def main(arguments):
    package = pathlib.Path(arguments[1] if len(arguments) > 1 else ".")
    if not (package / "Sources").is_dir():
        print(f"check-imports: error: no directory {package / 'Sources'}", file=sys.stderr)
        return 2
    found = list(problems(package))
    for problem in found:
        print(problem, file=sys.stderr)
    if not found:
        count = sum(1 for _ in module_directories(package))
        print(f"check-imports: the imports of {count} modules follow the module order")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
