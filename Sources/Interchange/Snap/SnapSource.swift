internal import Codecs
package import SystemIO

/// The data of snaps in a snapshot of snapd, as the files of `snap save` in
/// `/var/lib/snapd/snapshots` or the one of `snap export-snapshot`, under the logical paths of the
/// layout `snap`.
///
/// An archive of data is read if its SHA3-384 is the one in the metadata. Otherwise it is recorded
/// in `skipped`, and the others are read.
package struct SnapSource: ~Copyable, EntrySource {
  private let file: ArchiveFile
  /// The snapshots of an export; nil if the file is one snapshot.
  private var export: SnapExport?
  private let isExport: Bool
  /// The user whose data is read; nil for the only one.
  private let user: ByteString?
  private var snapshot: SnapZip?
  private var archive: SnapArchiveSource?
  /// The bytes of the metadata that were not read yet.
  private var text: ArraySlice<UInt8> = []
  /// Whether the metadata of the current snapshot is the next entry.
  private var isMetadataPending = false
  /// The metadata of the snaps so far.
  package private(set) var snaps: [SnapMetadata] = []
  /// The user whose data was found.
  package private(set) var foundUser: ByteString?
  package private(set) var owners = OwnerNames()
  private var recorded = SkippedEntries()
  /// The number of bytes of the metadata of the snaps.
  private var metadataSize = 0

  /// The maximum of `metadataSize`: the metadata of all snapshots of an export is in memory.
  private static let metadataLimit = 32 << 20

  static let action = "read the snapshot of snapd"

  /// Opens a snapshot.
  ///
  /// - Parameters:
  ///   - file: A file, or a stream, which is copied to a temporary file first.
  ///   - user: The user whose data is read; nil for the only one.
  /// - Throws: `unknownFormat` if it is not a snapshot of snapd; `damaged`; `unrepresentable` if it
  ///   has the data of several users and none is named.
  package static func open(
    _ file: ArchiveFile, user: ByteString? = nil
  ) throws(InterchangeError) -> SnapSource {
    var source = SnapSource(whole: try whole(file), user: user)
    if source.isExport {
      source.export = try SnapExport(source.file)
      try source.openNext()
    } else {
      try source.begin(try SnapZip(source.file))
    }
    guard !source.snaps.isEmpty || !source.recorded.isEmpty else {
      throw InterchangeError(
        .unknownFormat, action, subject: file.name, reason: "it has no snapshot of a snap")
    }
    return source
  }

  private init(whole file: ArchiveFile, user: ByteString?) {
    (self.file, self.user) = (file, user)
    isExport = !Self.isZip(file)
  }

  /// Whether a file begins as a zip archive (APPNOTE.TXT 4.3.7).
  private static func isZip(_ file: ArchiveFile) -> Bool {
    var start = [UInt8](repeating: 0, count: 4)
    file.seek(to: 0)
    return file.read(into: &start) == 4 && start == [0x50, 0x4b, 3, 4]
  }

  /// Returns a file with the bytes of a stream.
  private static func whole(_ file: ArchiveFile) throws(InterchangeError) -> ArchiveFile {
    if file.size != nil { return file }
    var buffer = [UInt8](repeating: 0, count: 1 << 18)
    do throws(SystemError) {
      let copy = try TemporaryFile.make()
      while true {
        let count = file.read(into: &buffer)
        if count <= 0 { break }
        try copy.write(buffer, from: 0, to: count)
      }
      if let failure = file.failure { throw failure }
      let whole = try ArchiveFile(copy, name: file.name)
      whole.isStopping = file.isStopping
      if !file.isStopped { return whole }
    } catch { throw TemporaryFile.failure(error, action, subject: file.name) }
    throw InterchangeError(
      .interrupted, action, subject: file.name, reason: "it was interrupted", hint: "run it again")
  }

  package var madeAt: Timestamp? { snaps.map(\.time).min() }

  /// The name of the format in messages.
  package var formatName: String {
    isExport ? "snapd export of snapshots" : "snapd snapshot"
  }

  package var apps: [ForeignApp] {
    snaps.map {
      ForeignApp(
        identifier: $0.name, build: $0.revision, version: $0.version, revision: $0.revision)
    }.sorted { $0.identifier < $1.identifier }
  }

  package var skipped: SkippedEntries { recorded }

  package mutating func next() throws(InterchangeError) -> ForeignEntry? {
    text = []
    do throws(InterchangeError) { return try nextEntry() } catch {
      recordOpen()
      throw error
    }
  }

  /// Collects the records of everything that is open, and closes it.
  private mutating func recordOpen() {
    if let skipped = archive?.skipped { recorded.append(skipped) }
    if let skipped = snapshot?.skipped { recorded.append(skipped) }
    if let skipped = export?.skipped { recorded.append(skipped) }
    archive = nil
    snapshot = nil
    export = nil
  }

  private mutating func nextEntry() throws(InterchangeError) -> ForeignEntry? {
    while true {
      if let entry = try nextOfArchive() { return entry }
      if snapshot == nil {
        try openNext()
        if snapshot == nil { return nil }
      }
      if let entry = metadataEntry() { return entry }
      try openArchive()
    }
  }

  package mutating func read(
    into buffer: UnsafeMutableRawBufferPointer
  ) throws(InterchangeError) -> Int {
    if !text.isEmpty {
      let count = min(text.count, buffer.count)
      buffer.copyBytes(from: text.prefix(count))
      text = text.dropFirst(count)
      return count
    }
    return try archive?.read(into: buffer) ?? 0
  }

  package mutating func skipHole() throws(InterchangeError) -> UInt64 {
    text.isEmpty ? try archive?.skipHole() ?? 0 : 0
  }
}

// MARK: - Snapshots and archives

extension SnapSource {
  /// Opens the next snapshot of an export; there is none after the last one.
  private mutating func openNext() throws(InterchangeError) {
    while let opened = try export?.next() {
      try begin(opened)
      if snapshot != nil { return }
    }
    if let skipped = export?.skipped { recorded.append(skipped) }
    if export != nil { recordMissingUser() }
    export = nil
  }

  private mutating func recordMissingUser() {
    guard let user, foundUser == nil else { return }
    recorded.append(path: file.name, reason: "it has no data of the user '\(user)'")
  }

  private mutating func begin(_ opened: consuming SnapZip) throws(InterchangeError) {
    let snap = opened.metadata
    guard !snaps.contains(where: { $0.name == snap.name }) else {
      return recorded.append(
        path: snap.fileName, reason: "there is another snapshot of the snap '\(snap.name)'")
    }
    metadataSize += opened.text.count
    guard metadataSize <= Self.metadataLimit else {
      throw InterchangeError(
        .limitExceeded, Self.action, subject: file.name,
        reason: "its snapshots have more than \(Self.metadataLimit) bytes of metadata")
    }
    try chooseUser(of: snap)
    snaps.append(snap)
    snapshot = consume opened
    isMetadataPending = true
  }

  /// Chooses the user whose data is read, because an imported snapshot has one home.
  private mutating func chooseUser(of snap: SnapMetadata) throws(InterchangeError) {
    var users: Set<ByteString> = []
    for case .user(let name) in snap.sums.keys { users.insert(name) }
    if let user {
      if users.contains(user) { foundUser = user }
      return
    }
    if let foundUser { users.insert(foundUser) }
    guard users.count <= 1 else {
      let names = users.sorted().map { "'\($0)'" }.joined(separator: ", ")
      throw InterchangeError(
        .unrepresentable, Self.action, subject: file.name,
        reason: "it has the data of several users: \(names)",
        hint: "name one of them with '--user NAME'")
    }
    foundUser = users.first
  }

  /// Returns the entry of the current snapshot's metadata, once.
  private mutating func metadataEntry() -> ForeignEntry? {
    guard isMetadataPending, let snap = snaps.last, let bytes = snapshot?.text else { return nil }
    isMetadataPending = false
    text = bytes[...]
    // A configuration may contain secrets: only root may read snapd's files.
    return ForeignEntry(
      path: snap.importedPath.components, kind: .file(size: UInt64(bytes.count)),
      permissions: 0o600, modified: snap.time)
  }

  private mutating func openArchive() throws(InterchangeError) {
    let chosen = foundUser
    archive = try snapshot?.nextArchive { wanted in
      switch wanted {
      case .system: true
      case .user(let name): name == chosen
      }
    }
    if archive != nil { return }
    if let skipped = snapshot?.skipped { recorded.append(skipped) }
    snapshot = nil
    if !isExport { recordMissingUser() }
  }

  private mutating func nextOfArchive() throws(InterchangeError) -> ForeignEntry? {
    if archive == nil { return nil }
    if let entry = try archive?.next() { return entry }
    if let skipped = archive?.skipped { recorded.append(skipped) }
    if let names = archive?.owners { owners.add(names) }
    archive = nil
    return nil
  }
}

// MARK: - Reading

extension SnapSource {
  /// Opens an archive at the start of a file.
  static func open(
    _ file: ArchiveFile, format: ArchiveReader.Format
  ) throws(InterchangeError) -> ArchiveReader {
    file.seek(to: 0)
    do throws(CodecError) { return try ArchiveReader(file, format: format) } catch {
      throw fault(error, in: file)
    }
  }

  /// Returns the next member, or nil after the last one.
  static func next(
    of reader: inout ArchiveReader, in file: ArchiveFile
  ) throws(InterchangeError) -> ArchiveMember? {
    do throws(CodecError) { return try reader.next() } catch { throw fault(error, in: file) }
  }

  /// Reads the next bytes of a member and returns their number, 0 at its end.
  ///
  /// - Throws: `damagedEntry` for damage if the archive can be read further.
  static func read(
    from reader: inout ArchiveReader, into buffer: inout [UInt8], of name: ByteString,
    in file: ArchiveFile
  ) throws(InterchangeError) -> Int {
    do throws(CodecError) {
      var span = buffer.mutableSpan
      return try span.withUnsafeMutableBytes { (raw) throws(CodecError) in
        try reader.read(into: raw)
      }
    } catch {
      if file.failure != nil || reader.isEnded { throw fault(error, in: file) }
      throw InterchangeError(.damagedEntry, action, subject: name, reason: error.reason)
    }
  }

  /// Returns the whole content of a member.
  ///
  /// - Throws: `damaged` if it is damaged or has more bytes than the limit.
  static func readAll(
    of reader: inout ArchiveReader, limit: Int, as name: ByteString, in file: ArchiveFile
  ) throws(InterchangeError) -> [UInt8] {
    var (all, buffer): ([UInt8], [UInt8]) = ([], [UInt8](repeating: 0, count: 1 << 16))
    while true {
      let count: Int
      do throws(InterchangeError) {
        count = try read(from: &reader, into: &buffer, of: name, in: file)
      } catch {
        guard error.kind == .damagedEntry else { throw error }
        throw InterchangeError(
          .damaged, action, subject: file.name, reason: "its \(name): \(error.reason)")
      }
      if count == 0 { return all }
      all += buffer.prefix(count)
      guard all.count <= limit else {
        throw InterchangeError(
          .limitExceeded, action, subject: file.name,
          reason: "its \(name) has more than \(limit) bytes")
      }
    }
  }

  private static func fault(_ error: CodecError, in file: ArchiveFile) -> InterchangeError {
    if file.isStopped {
      return InterchangeError(
        .interrupted, action, subject: file.name, reason: "it was interrupted",
        hint: "run it again")
    }
    if let failure = file.failure { return InterchangeError(failure, action, subject: file.name) }
    return InterchangeError(error, action, subject: file.name)
  }
}
