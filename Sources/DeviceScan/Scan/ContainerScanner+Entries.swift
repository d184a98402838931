internal import Codecs
internal import DatabaseCapture
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

extension ContainerScanner {
  /// Appends an entry that the walk found; returns its index.
  mutating func add(
    _ entry: WalkBatch.Entry, bytes: [UInt8], state: State, policy: Classifier.State,
    in directory: borrowing WalkDirectory
  ) -> Int {
    if scan.entries[state.directory].childCount == 0 {
      scan.entries[state.directory].firstChild = Int32(scan.entries.count)
    }
    scan.entries[state.directory].childCount += 1
    let start = scan.names.count
    scan.names.append(contentsOf: bytes[entry.nameRange])
    let found = self.entry(
      entry.status, parent: state.directory, name: start..<scan.names.count, policy,
      type: type(of: entry, bytes: bytes, policy: policy, in: directory))
    return scan.append(found, accessed: entry.accessed)
  }

  /// Returns an entry with the policy's verdicts on it.
  ///
  /// - Parameter name: the range of its name in the scan's names.
  mutating func entry(
    _ status: FileStatus, parent: Int, name: Range<Int>, _ policy: Classifier.State,
    type: EntryType
  ) -> ScannedEntry {
    let verdicts = classifier.verdicts(policy, Self.facts(type, status))
    let mode = verdicts[options.view].backup.mode(for: destination)
    return ScannedEntry(
      parent: Int32(parent), nameStart: UInt32(name.lowerBound), nameLength: UInt16(name.count),
      selection: mode == .never ? .excluded : .included, status: status, verdicts: verdicts,
      type: type)
  }

  static func facts(_ type: EntryType, _ status: FileStatus) -> EntryFacts {
    EntryFacts(type, size: Int64(clamping: status.size), modified: status.modified.seconds)
  }

  /// Returns the type of an entry. Whether a file belongs to a database is determined only if the
  /// policy's answer depends on it.
  private mutating func type(
    of entry: WalkBatch.Entry, bytes: [UInt8], policy: Classifier.State,
    in directory: borrowing WalkDirectory
  ) -> EntryType {
    switch entry.status.kind {
    case .directory: return .directory
    case .symlink: return .symlink
    case .fifo, .socket, .characterDevice, .blockDevice: return .special
    case .file: break
    }
    guard classifier.asksForDatabases(policy) else { return .file }
    let found = bytes.span.extracting(entry.nameRange)
    let mayOpen =
      !options.isLocked || isReadableWhileLocked(found, entry.status, by: policy, in: directory)
    let isDatabase = DatabaseFile.isDatabase(
      found, size: mayOpen ? entry.status.size : 0, in: directory.directory, &name)
    return isDatabase ? .database : .file
  }

  /// Whether a file can be opened while the device is locked, by its metadata, or otherwise by the
  /// policy.
  private func isReadableWhileLocked(
    _ name: Span<UInt8>, _ status: FileStatus, by policy: Classifier.State,
    in directory: borrowing WalkDirectory
  ) -> Bool {
    let attributes = directory.directory.attributes(of: ByteString(name))
    let stated = try? attributes.value(of: ProtectionClass.attribute)
    let protection =
      stated.flatMap { ProtectionClass(attribute: $0) }
      ?? classifier.verdicts(policy, Self.facts(.file, status)).keep.protection
    return protection?.isReadableWhileLocked ?? true
  }

  /// Whether an entry with a name is scanned. In a container that is one entry of a directory, only
  /// that entry is, with the other files of a database; the program's own entries never are.
  func isWanted(_ name: Span<UInt8>, isFile: Bool = true, state: State) -> Bool {
    guard state.directory == 0 else { return true }
    if let member = scan.container.member {
      if member.withSpan({ name.hasSameBytes(as: $0) }) { return true }
      return isFile && DatabaseMember.mayBeSidecar(name) && scan.container.has(ByteString(name))
    }
    return !OwnNames.has(name)
  }
}

extension ContainerScanner {
  /// Detects the files of a SQLite database: the database, its log, journal or shared memory
  /// (docs/design.md, databases).
  private enum DatabaseFile {
    private static let companions = [DatabaseMember.log, .sharedMemory, .journal].map(\.suffix)

    /// Whether a file belongs to a database, by its name, then by the files beside it, and last by
    /// its first bytes. The names are built in `buffer`.
    static func isDatabase(
      _ name: Span<UInt8>, size: UInt64, in directory: borrowing Directory,
      _ buffer: inout NameBuffer
    ) -> Bool {
      let (log, magic) = (companions[0], DatabaseHead.bytes)
      buffer.set(name)
      for number in 0..<companions.count {
        let suffix = companions[number]
        guard name.count > suffix.count, name.hasSuffix(suffix.span) else { continue }
        buffer.shorten(to: name.count - suffix.count)
        return isFile(buffer, directory)
      }
      buffer.extend(log.span)
      if isFile(buffer, directory) { return true }
      buffer.shorten(to: name.count)
      guard size >= UInt64(magic.count) else { return false }
      return (try? directory.begins(buffer, with: magic.span)) ?? false
    }

    private static func isFile(_ name: borrowing NameBuffer, _ directory: borrowing Directory)
      -> Bool
    {
      (try? directory.statusIfPresent(name))?.kind == .file
    }
  }
}
