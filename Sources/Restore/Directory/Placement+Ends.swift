package import ArchiveStore
internal import DeviceTransaction
internal import SystemIO

/// The steps after all entries are in place.
extension Placement {
  /// Removes entries that the snapshot does not have. Returns the totals of the removed and the
  /// replaced entries.
  mutating func delete(isStopping: () -> Bool) throws -> RestoreTotals {
    var gone = plan.deletionsOfOrphans(besides: staying).gone
    for deletion in plan.deletions {
      if let replacement = deletion.replacement, !run.findings.isUnmade(replacement) {
        gone.add(deletion.totals)
      }
    }
    // A database that cannot be removed keeps its log, which sorts after it.
    var kept: Set<DirectoryChild> = []
    for deletion in plan.removals {
      if let database = deletion.name.databaseOfCompanion,
        kept.contains(DirectoryChild(directory: deletion.directory, name: database))
      {
        run.findings.remark(
          deletion.directory, "'\(deletion.name)' is kept: its '\(database)' cannot be removed"
        )
        continue
      }
      if isStopping() {
        throw OperationError(
          .interrupted, "interrupted: all entries are restored, but some deletions remain",
          hint: "run the same command again to continue")
      }
      do throws(SystemError) {
        let (trash, path) = (trash, plan.tree.path(deletion.directory, from: 0).components)
        try target.within(deletion.directory) { directory throws(SystemError) in
          guard let trash else { return try directory.removeTree(deletion.name) }
          try trash.preserve(deletion.name, of: directory, at: path, leaving: true)
        }
        gone.add(deletion.totals)
      } catch {
        if error.isMissing { continue }
        kept.insert(deletion.child)
        run.findings.remark(deletion.directory, "cannot remove '\(deletion.name)': \(error.reason)")
      }
    }
    return gone
  }

  /// Sets the metadata of merged directories, deepest first.
  package mutating func finishDirectories(_ reader: RepositoryReader) {
    for number in plan.tree.entries.indices.reversed() {
      let entry = plan.tree.entries[number]
      guard entry.kind == .directory, entry.isMerged, entry.hasMetadata, entry.action != .leave
      else { continue }
      let metadata = EntryMetadata(
        number: number, entry: entry,
        attributes: reader.attributes(
          of: plan.tree.detail(number), entry: number, findings: run.findings),
        findings: run.findings)
      attempt(number) { target throws(SystemError) in
        try target.within(number) { directory throws(SystemError) in
          metadata.removeOthers(on: directory)
          metadata.set(on: directory)
        }
      }
    }
  }

  /// Sets the flags, as the last step: an immutable file can be neither renamed nor given a time. A
  /// merged directory may have flags that are not stored. For a hard-linked file, one name is
  /// enough.
  package mutating func setFlags() {
    for number in plan.tree.entries.indices.reversed() {
      let (entry, flags) = (plan.tree.entries[number], plan.tree.detail(number).flags)
      let mayHaveOthers = entry.kind == .directory && entry.isMerged && entry.hasMetadata
      guard flags != 0 || mayHaveOthers, entry.action.isWritten, !run.findings.isUnmade(number),
        plan.tree.leader(number).map(run.findings.isUnmade) ?? true
      else { continue }
      let name = plan.tree.name(number)
      attempt(number) { target throws(SystemError) in
        if entry.kind == .directory {
          try target.within(number) { directory throws(SystemError) in
            if flags != 0 { try directory.setFlags(flags) } else { try directory.clearFlags() }
          }
        } else {
          try target.withDirectory(of: number) { directory throws(SystemError) in
            try directory.file(name).setFlags(flags)
          }
        }
      }
    }
  }

  private mutating func attempt(
    _ number: Int, _ step: (inout TreeCursor) throws(SystemError) -> Void
  ) {
    do throws(SystemError) {
      try step(&target)
    } catch {
      run.findings.remark(number, error.reason)
    }
  }
}
