internal import Codecs
internal import SystemIO

/// The snapshot of the snap whose entries are arriving.
final class SnapDraft {
  let metadata: SnapMetadata
  private let names: OwnerNames
  /// The archives that are complete, with their SHA3-384.
  private(set) var archives: [Archive] = []
  private(set) var skipped = SkippedEntries()
  /// The archive whose entries are arriving.
  private var open: OpenArchive?
  /// The owner of the first entry of the user's data.
  private var owner: UInt32?
  /// The error of the output, which no entry can cause.
  private(set) var failure: InterchangeError?

  /// A complete archive.
  struct Archive {
    let isOfSystem: Bool
    let file: SpooledOutput
    let sum: [UInt8]
  }

  private struct OpenArchive {
    let isOfSystem: Bool
    let file: SpooledOutput
    var sink: TarSink
  }

  init(_ metadata: SnapMetadata, names: OwnerNames) {
    (self.metadata, self.names) = (metadata, names)
  }

  /// Adds an entry to its archive. An error of the output is in `failure`.
  ///
  /// - Throws: `SnapFault` if the entry cannot be written.
  func add(_ entry: ForeignEntry, at location: SnapPath.Location) throws(SnapFault) {
    var member = entry
    member.path = location.member(revision: metadata.revision)
    if case .hardLink(let target) = entry.kind {
      guard let other = SnapPath.location(of: target), other.snap == location.snap,
        other.isOfSystem == location.isOfSystem
      else {
        throw SnapFault(
          reason:
            "it is a hard link to '\(ByteString(joining: target))', which is in another archive")
      }
      member.kind = .hardLink(to: other.member(revision: metadata.revision))
    }
    if !location.isOfSystem, owner == nil { owner = entry.owner }
    do throws(InterchangeError) {
      try beginArchive(isOfSystem: location.isOfSystem)
      try open?.sink.add(member)
    } catch { failure = error }
  }

  func write(_ bytes: UnsafeRawBufferPointer) throws(InterchangeError) {
    try open?.sink.write(bytes)
  }

  /// Begins the archive of the user's or the system's data; in the order of the logical paths, one
  /// follows the other.
  private func beginArchive(isOfSystem: Bool) throws(InterchangeError) {
    if open?.isOfSystem == isOfSystem { return }
    try endArchive()
    let file = try SpooledOutput()
    open = OpenArchive(
      isOfSystem: isOfSystem, file: file,
      sink: try TarSink(to: file.write, compression: .gzip, names: names))
  }

  /// Completes the open archive.
  func endArchive() throws(InterchangeError) {
    guard var ended = open.take() else { return }
    try ended.sink.finish()
    skipped.append(ended.sink.skipped, below: metadata.name)
    archives.append(
      Archive(isOfSystem: ended.isOfSystem, file: ended.file, sum: ended.file.finish()))
  }

  /// Returns the name of the archive in the snapshot.
  private func name(of archive: Archive, user: ByteString?) -> SnapArchive {
    if archive.isOfSystem { return .system }
    let known = owner.flatMap { names.users[$0] ?? Host.userName($0) }.map { ByteString($0) }
    let usable = known.flatMap { $0.nameFault == nil ? $0 : nil }
    return .user(user ?? usable ?? "root")
  }

  /// Returns the metadata with the sums and the size of the archives.
  func finishedMetadata(user: ByteString?) -> SnapMetadata {
    var finished = metadata
    finished.sums = [:]
    for archive in archives { finished.sums[name(of: archive, user: user)] = archive.sum }
    finished.size = archives.reduce(0) { $0 + $1.file.size }
    return finished
  }

  /// Writes the snapshot. As in snapd's snapshots, members are not compressed, because the archives
  /// already are.
  func writeZip(
    _ metadata: SnapMetadata, user: ByteString?, to output: @escaping ByteOutput
  ) throws(InterchangeError) {
    var zip = try ZipOutput(.storedZip, to: output, action: SpooledOutput.action)
    for archive in archives.sorted(by: { $0.isOfSystem && !$1.isOfSystem }) {
      try zip.begin(
        name(of: archive, user: user).member, size: archive.file.size, modified: metadata.time)
      try archive.file.forEachPortion { (bytes) throws(InterchangeError) in try zip.write(bytes) }
    }
    let text = metadata.text
    try zip.add("meta.json", text, modified: metadata.time)
    let sum = Hex.encode(MessageDigest.digest(of: text.span, .sha3x384)) + "\n"
    try zip.add("meta.sha3_384", Array(sum.utf8), modified: metadata.time)
    try zip.finish()
  }
}

extension ZipOutput {
  /// Begins a file of a snapshot.
  fileprivate mutating func begin(
    _ name: ByteString, size: UInt64, modified: Timestamp
  ) throws(InterchangeError) {
    var member = PaxMember(path: Array(name.bytes), kind: .file(size: size), mode: 0o600)
    // The field has 32 bits, which some programs read as a signed number.
    member.modified = max(0, min(modified.seconds, Int64(Int32.max)))
    try begin(member)
  }

  fileprivate mutating func add(
    _ name: ByteString, _ bytes: [UInt8], modified: Timestamp
  ) throws(InterchangeError) {
    try begin(name, size: UInt64(bytes.count), modified: modified)
    try write(bytes.span)
  }
}
