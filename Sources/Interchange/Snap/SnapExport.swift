internal import Codecs
internal import SystemIO

/// The snapshots in a file of `snap export-snapshot`: a tar archive of zip archives, with
/// `content.json` at its start and `export.json` at its end (snapd,
/// overlord/snapshotstate/backend, `StreamTo`).
struct SnapExport: ~Copyable {
  private let file: ArchiveFile
  private var reader: ArchiveReader
  private var found: Set<ByteString> = []
  /// The files that `export.json` lists; nil if it was not found.
  private var listed: [ByteString]?
  private(set) var skipped = SkippedEntries()

  private static let contentName: ByteString = "content.json"
  static let listName: ByteString = "export.json"
  private static let listLimit = 4 << 20
  /// The maximum number of snapshots.
  private static let limit = 10_000

  /// Opens an export.
  ///
  /// - Throws: `unknownFormat` if it is not an archive.
  init(_ file: ArchiveFile) throws(InterchangeError) {
    reader = try SnapSource.open(file, format: .any)
    self.file = file
  }

  /// Returns the next snapshot, or nil after the last one. A snapshot that cannot be read is
  /// recorded in `skipped`.
  mutating func next() throws(InterchangeError) -> SnapZip? {
    while let member = try SnapSource.next(of: &reader, in: file) {
      let name = member.path.map { ByteString($0) } ?? ""
      if name == Self.contentName { continue }
      if name == Self.listName {
        try readList()
        continue
      }
      guard case .file = member.kind, name.hasSuffix(".zip"), name.nameFault == nil else {
        skipped.append(path: name, reason: "snapd's exports have no such member")
        continue
      }
      guard found.count < Self.limit else {
        throw InterchangeError(
          .limitExceeded, SnapSource.action, subject: file.name,
          reason: "it has more than \(Self.limit) snapshots")
      }
      found.insert(name)
      if let snapshot = try open(name) { return snapshot }
    }
    finish()
    return nil
  }

  /// Copies a snapshot into a file and opens it. Returns nil after recording why that is not
  /// possible.
  private mutating func open(_ name: ByteString) throws(InterchangeError) -> SnapZip? {
    do throws(InterchangeError) {
      let copy = try SpooledMember(
        of: &reader, limit: SnapZip.spoolLimit(in: file), name: name, in: file)
      let zip: ArchiveFile
      do throws(SystemError) { zip = try ArchiveFile(copy.file.duplicate(), name: name) } catch {
        throw InterchangeError(error, SnapSource.action, subject: name)
      }
      zip.isStopping = file.isStopping
      return try SnapZip(zip)
    } catch {
      switch error.kind {
      case .damaged where reader.isEnded, .system, .interrupted: throw error
      default: skipped.append(path: name, reason: error.reason)
      }
      return nil
    }
  }

  private mutating func readList() throws(InterchangeError) {
    let text = try SnapSource.readAll(
      of: &reader, limit: Self.listLimit, as: Self.listName, in: file)
    let list = try? JSON(parsing: text, limits: JSON.Limits(bytes: Self.listLimit, depth: 8))
    listed = list?["files"]?.array?.compactMap { $0.string.map { ByteString($0) } }
  }

  /// Records the snapshots that are missing from the export, or that their list is missing.
  private mutating func finish() {
    guard let listed else {
      return skipped.append(
        path: file.name, reason: "it has no valid export.json, so its end may be missing")
    }
    for name in listed where !found.contains(name) {
      skipped.append(path: name, reason: "export.json lists it, and it is missing")
    }
  }
}
