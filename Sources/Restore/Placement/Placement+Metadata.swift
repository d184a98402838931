package import ArchiveStore
internal import SystemIO

// The metadata that is set once the staged entries are in place.
extension Placement {
  /// Whether the metadata of an entry is set once the staged entries are in place.
  static func isFinished(_ entry: PlannedTree.Entry) -> Bool {
    entry.kind == .directory && entry.isMerged && entry.hasMetadata && entry.action != .leave
  }

  /// Whether attributes of merged directories are read from the repository once the staged entries
  /// are in place.
  static func reads(_ plan: RestorePlan, besides values: AttributeValues) -> Bool {
    plan.tree.entries.indices.contains { number in
      isFinished(plan.tree.entries[number])
        && plan.tree.detail(number).attributes.contains {
          !$0.isInline && values.value(of: $0) == nil
        }
    }
  }

  /// Sets the metadata of merged directories, deepest first.
  package mutating func finishDirectories(_ reader: RepositoryReader) {
    for number in plan.tree.entries.indices.reversed() {
      let entry = plan.tree.entries[number]
      guard Self.isFinished(entry) else { continue }
      let metadata = EntryMetadata(
        number: number, entry: entry,
        attributes: reader.attributes(
          of: plan.tree.detail(number), entry: number, findings: run.findings, held: run.values),
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
  /// enough. An entry that was exchanged since it was put in place is reported instead.
  package mutating func setFlags() {
    var links: [Int: Int] = [:]
    for number in plan.tree.entries.indices {
      if let leader = plan.tree.leader(number) { links[leader, default: 1] += 1 }
    }
    for number in plan.tree.entries.indices.reversed() {
      let (entry, flags) = (plan.tree.entries[number], plan.tree.detail(number).flags)
      let mayHaveOthers = entry.kind == .directory && entry.isMerged && entry.hasMetadata
      guard flags != 0 || mayHaveOthers, entry.action.isWritten, !run.findings.isUnmade(number),
        plan.tree.leader(number).map(run.findings.isUnmade) ?? true
      else { continue }
      let (name, run, count) = (plan.tree.name(number), run, links[number] ?? 1)
      attempt(number) { target throws(SystemError) in
        if entry.kind == .directory {
          try target.within(number) { directory throws(SystemError) in
            if !entry.isMerged, try !run.isCreated(number, directory.status(), links: count) {
              throw SystemError.replaced(directory.path)
            }
            if flags != 0 { try directory.setFlags(flags) } else { try directory.clearFlags() }
          }
        } else {
          try target.withDirectory(of: number) { directory throws(SystemError) in
            let file = try directory.file(name)
            guard try run.isCreated(number, file.status(), links: count) else {
              throw SystemError.replaced(directory.path.appending(name))
            }
            try file.setFlags(flags)
          }
        }
      }
    }
  }

  private mutating func attempt(
    _ number: Int, _ step: (inout RestoreRun.Cursor) throws(SystemError) -> Void
  ) {
    do throws(SystemError) {
      try step(&target)
    } catch {
      run.findings.remark(number, error.reason)
    }
  }
}
