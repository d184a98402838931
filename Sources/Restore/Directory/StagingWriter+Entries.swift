internal import ArchiveStore
internal import SystemIO

extension StagingWriter {
  /// Creates directories, with full access until they are finished, and entries without content.
  mutating func makeEntries() throws {
    let needed = run.tree.directoriesWithWork()
    var number = 1
    while number < run.tree.entries.count {
      try checkStop()
      let entry = run.tree.entries[number]
      let isWanted = entry.kind == .directory ? needed[number] : entry.action.isWritten
      guard isWanted else {
        number = entry.kind == .directory ? run.tree.end(of: number) : number + 1
        continue
      }
      do throws(SystemError) {
        try make(number)
        number += 1
      } catch {
        try run.note(number, error)
        let end = run.tree.end(of: number)
        for below in (number + 1)..<max(end, number + 1) { run.findings.skip(below) }
        number = end
      }
    }
  }

  private mutating func make(_ number: Int) throws(SystemError) {
    let entry = run.tree.entries[number]
    let (name, detail) = (run.tree.name(number), run.tree.detail(number))
    if detail.leader != nil { return }
    switch entry.kind {
    case .directory:
      try cursor.withDirectory(of: number) { directory throws(SystemError) in
        try directory.createDirectory(name, permissions: 0o700)
      }
    case .file:
      if let bytes = detail.generated { return try makeFile(number, bytes) }
      if !run.isSimple(number) { try makeFile(number) }
    case .symlink, .fifo, .socket, .characterDevice, .blockDevice:
      let metadata = metadata(number)
      try cursor.withDirectory(of: number) { directory throws(SystemError) in
        if entry.kind == .symlink {
          try directory.createLink(name, to: detail.linkTarget)
        } else {
          try directory.createSpecial(
            name, kind: entry.kind, permissions: 0o600, device: detail.device)
        }
        metadata.set(onChild: name, of: directory)
      }
    }
  }

  /// Creates a file without data, which its blobs are written to later.
  private mutating func makeFile(_ number: Int) throws(SystemError) {
    let (entry, name) = (run.tree.entries[number], run.tree.name(number))
    try cursor.withDirectory(of: number) { directory throws(SystemError) in
      let file = try directory.create(name, permissions: 0o600)
      if entry.size > 0 { try file.truncate(to: entry.size) }
      try file.close()
    }
    filled.append(number)
  }

  /// Creates a file with known content.
  private mutating func makeFile(_ number: Int, _ bytes: [UInt8]) throws(SystemError) {
    let (name, metadata) = (run.tree.name(number), metadata(number))
    try cursor.withDirectory(of: number) { directory throws(SystemError) in
      let file = try directory.create(name, permissions: 0o600)
      try file.write(bytes)
      metadata.set(on: file)
      try file.close()
    }
  }

  /// Sets the metadata of the files that were written step by step, and removes incomplete files.
  mutating func finishFiles() throws {
    for number in filled {
      try checkStop()
      run.counters.didHandle(files: 1)
      let (name, isLost) = (run.tree.name(number), run.findings.isUnmade(number))
      let metadata = metadata(number)
      do throws(SystemError) {
        try cursor.withDirectory(of: number) { directory throws(SystemError) in
          if isLost { return try directory.remove(name) }
          let file = try directory.fileForWriting(name)
          if run.syncsEachFile, metadata.entry.size >= UInt64(LargePiece.least) { try file.sync() }
          metadata.set(on: file)
        }
      } catch {
        try run.note(number, error)
      }
    }
  }

  /// Creates hard links.
  mutating func makeLinks() throws {
    var staged = try run.cursor()
    var target = try run.targetCursor()
    for number in run.tree.entries.indices {
      guard let leader = run.tree.leader(number), run.tree.entries[number].action.isWritten,
        !run.findings.isUnmade(number)
      else { continue }
      if run.findings.isUnmade(leader) {
        run.findings.loseLink(leader, number)
        continue
      }
      do throws(SystemError) {
        if run.tree.entries[leader].action.isWritten {
          try link(number, to: leader, &staged)
        } else {
          try link(number, to: leader, &target)
        }
      } catch {
        try run.note(number, error)
      }
    }
  }

  private mutating func link(
    _ number: Int, to leader: Int, _ place: inout TreeCursor
  ) throws(SystemError) {
    let (name, existing) = (run.tree.name(number), run.tree.name(leader))
    try cursor.withDirectory(of: number) { directory throws(SystemError) in
      try place.withDirectory(of: leader) { other throws(SystemError) in
        try directory.createHardLink(name, to: existing, in: other)
      }
    }
  }

  /// Sets the metadata of new directories, deepest first, because a new child changes its
  /// directory's time.
  mutating func finishDirectories() {
    for number in run.tree.entries.indices.reversed() {
      let entry = run.tree.entries[number]
      guard entry.kind == .directory, entry.action.isWritten, !entry.isMerged, entry.hasMetadata,
        !run.findings.isUnmade(number)
      else { continue }
      let metadata = metadata(number)
      do throws(SystemError) {
        try cursor.within(number) { directory throws(SystemError) in metadata.set(on: directory) }
      } catch {
        run.findings.remark(number, error.reason)
      }
    }
  }

  /// Returns the metadata of an entry, with the values of its attributes.
  func metadata(_ number: Int) -> EntryMetadata {
    EntryMetadata(
      number: number, entry: run.tree.entries[number],
      attributes: reader.attributes(
        of: run.tree.detail(number), entry: number, findings: run.findings),
      findings: run.findings)
  }
}

extension RepositoryReader {
  /// Returns an entry's attributes with their values; a damaged value is recorded.
  func attributes(
    of detail: EntryDetail, entry number: Int, findings: RestoreFindings
  ) -> [(name: ByteString, value: [UInt8])] {
    detail.attributes.compactMap { attribute in
      do throws(StoreError) {
        return (attribute.name, try value(of: attribute))
      } catch {
        let reason = "attribute \(attribute.name): \(error.reason)"
        if error.kind == .damaged {
          findings.losePart(number, reason)
        } else {
          findings.remark(number, reason)
        }
        return nil
      }
    }
  }
}

extension PlannedTree {
  /// Returns the earlier entry that an entry is a hard link to; nil if it is none.
  func leader(_ number: Int) -> Int? { entries[number].detail.flatMap { details[Int($0)].leader } }

  /// Returns for each entry whether it is a directory that is created or in which an entry is
  /// created.
  func directoriesWithWork() -> SpillableArray<Bool> {
    var needed = SpillableArray(repeating: false, count: entries.count)
    for number in entries.indices.reversed() {
      let entry = entries[number]
      let isMade = entry.action.isWritten && !entry.isMerged
      if isMade || needed[number] {
        needed[Int(entry.parent)] = true
        if entry.kind == .directory { needed[number] = true }
      }
    }
    return needed
  }
}
