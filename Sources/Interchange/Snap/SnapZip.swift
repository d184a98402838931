internal import Codecs
internal import SystemIO

/// The snapshot of one snap: a zip archive with `meta.json`, its SHA3-384 and the archives of the
/// data (snapd, overlord/snapshotstate/backend, `Save` and `Open`).
struct SnapZip: ~Copyable {
  let metadata: SnapMetadata
  /// The bytes of `meta.json`.
  let text: [UInt8]
  private let file: ArchiveFile
  private var reader: ArchiveReader
  /// The archives that were not found yet.
  private var missing: Set<SnapArchive>
  private(set) var skipped = SkippedEntries()

  private static let metadataName: ByteString = "meta.json"
  private static let sumName: ByteString = "meta.sha3_384"
  /// The maximum number of members: the archives, and members that other programs add.
  private static let memberLimit = 10_000
  /// The maximum size of a copied archive: this multiple of the size of the file that contains it.
  /// snapd stores archives, which are compressed, without compressing them again.
  static func spoolLimit(in file: ArchiveFile) -> UInt64 {
    max(64 << 20, (file.size ?? 0).multipliedReportingOverflow(by: 16).partialValue)
  }

  /// Opens a snapshot and checks its metadata.
  ///
  /// - Throws: `unknownFormat` if it is not a zip archive; `damaged` if the metadata is missing,
  ///   invalid or has another SHA3-384.
  init(_ file: ArchiveFile) throws(InterchangeError) {
    let text = try Self.metadata(in: file)
    let metadata = try Self.parse(text, in: file)
    reader = try SnapSource.open(file, format: .zip)
    (self.metadata, self.text, self.file) = (metadata, text, file)
    missing = Set(metadata.sums.keys)
  }

  // MARK: - Metadata

  /// Returns `meta.json` after comparing it with its sum. It comes after the archives, so this is a
  /// separate pass, which does not read the archives.
  private static func metadata(in file: ArchiveFile) throws(InterchangeError) -> [UInt8] {
    var reader = try SnapSource.open(file, format: .zip)
    var (text, sum): ([UInt8]?, [UInt8]?) = (nil, nil)
    var count = 0
    while let member = try next(
      of: &reader, in: file, isComplete: text != nil && sum != nil)
    {
      count += 1
      guard count <= memberLimit else {
        throw InterchangeError(
          .limitExceeded, SnapSource.action, subject: file.name,
          reason: "it has more than \(memberLimit) members")
      }
      switch member.path.map({ ByteString($0) }) {
      case metadataName where text == nil:
        text = try SnapSource.readAll(
          of: &reader, limit: SnapMetadata.sizeLimit, as: metadataName, in: file)
      case sumName where sum == nil:
        sum = try SnapSource.readAll(of: &reader, limit: 1000, as: sumName, in: file)
      case metadataName, sumName: throw damaged(file, "it has two files of metadata")
      default: break
      }
    }
    guard let text else {
      throw InterchangeError(
        .unknownFormat, SnapSource.action, subject: file.name,
        reason: "it has no meta.json, so it is not a snapshot of snapd")
    }
    guard let sum else { throw damaged(file, "it has no meta.sha3_384") }
    let wanted = sum.filter { !" \n\r\t".utf8.contains($0) }
    let found = Hex.encode(MessageDigest.digest(of: text.span, .sha3x384))
    guard wanted.elementsEqual(found.utf8) else {
      throw damaged(file, "its meta.json has another SHA3-384 than meta.sha3_384")
    }
    return text
  }

  /// Returns the next member, or nil after the last one. Damage after the last required one, such
  /// as a missing directory of the zip archive, does not matter, because each has its own checksum.
  private static func next(
    of reader: inout ArchiveReader, in file: ArchiveFile, isComplete: Bool
  ) throws(InterchangeError) -> ArchiveMember? {
    do throws(InterchangeError) { return try SnapSource.next(of: &reader, in: file) } catch {
      if isComplete, error.kind == .damaged { return nil }
      throw error
    }
  }

  private static func parse(
    _ text: [UInt8], in file: ArchiveFile
  ) throws(InterchangeError) -> SnapMetadata {
    do throws(SnapFault) { return try SnapMetadata(parsing: text) } catch {
      throw damaged(file, "its meta.json cannot be read: \(error.reason)")
    }
  }

  private static func damaged(_ file: ArchiveFile, _ reason: String) -> InterchangeError {
    InterchangeError(.damaged, SnapSource.action, subject: file.name, reason: reason)
  }

  // MARK: - Archives

  /// Returns the next archive of the system or of the requested user whose SHA3-384 is the one in
  /// the metadata, or nil after the last one. Others are recorded in `skipped`.
  ///
  /// - Parameter wanted: Whether an archive is to be read.
  mutating func nextArchive(
    where wanted: (SnapArchive) -> Bool
  ) throws(InterchangeError) -> SnapArchiveSource? {
    while let member = try Self.next(of: &reader, in: file, isComplete: missing.isEmpty) {
      let name = member.path.map { ByteString($0) } ?? ""
      if name == Self.metadataName || name == Self.sumName { continue }
      guard let archive = SnapArchive(member: name) else {
        // The directory `user/`, which some programs add.
        if member.kind != .directory { skip(name, "snapd's snapshots have no such member") }
        continue
      }
      guard let sum = metadata.sums[archive] else {
        skip(name, "meta.json has no SHA3-384 of it")
        continue
      }
      guard missing.remove(archive) != nil else {
        skip(name, "there is another archive of this name")
        continue
      }
      if !wanted(archive) { continue }
      if let source = try open(archive, sum) { return source }
    }
    for archive in missing.sorted(by: { $0.member < $1.member }) {
      skip(archive.member, "it is in meta.json and missing in the snapshot")
    }
    missing = []
    return nil
  }

  /// Copies an archive, so that the parsed bytes are the ones that were checked. Returns nil after
  /// recording why it cannot be read.
  private mutating func open(
    _ archive: SnapArchive, _ sum: [UInt8]
  ) throws(InterchangeError) -> SnapArchiveSource? {
    let name = archive.member
    do throws(InterchangeError) {
      let copy = try SpooledMember(
        of: &reader, limit: Self.spoolLimit(in: file), name: name, in: file)
      guard copy.sum == sum else {
        skip(name, "it has another SHA3-384 than in meta.json: its data is not taken")
        return nil
      }
      return try SnapArchiveSource(copy, archive, of: metadata, stopping: file.isStopping)
    } catch {
      guard error.kind == .damagedEntry || error.kind == .unknownFormat else { throw error }
      skip(name, error.reason)
      return nil
    }
  }

  private mutating func skip(_ name: ByteString, _ reason: String) {
    skipped.append(path: metadata.name.appending(name), reason: reason)
  }
}
