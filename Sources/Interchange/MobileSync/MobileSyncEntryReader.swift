internal import ArchiveStore
internal import Codecs
internal import SystemIO

/// Converts the records of a backup to entries, and opens their contents. Safe to use from any
/// thread.
struct MobileSyncEntryReader: Sendable {
  let domains: MobileSyncDomains
  let contents: MobileSyncContents
  /// The keys of an encrypted backup.
  let keys: ClassKeys?
  /// The date of the backup.
  let madeAt: Timestamp?
  /// Whether the manifest is Manifest.db.
  let hasDirectories: Bool
  /// The contents of the last import; nil if they are not requested.
  var known: KnownContents?

  /// The limit of an attribute's name in bytes (XATTR_NAME_MAX).
  private static let attributeNameLimit = 255

  /// The last domain and its container: most rows have the same domain as the row before.
  struct LastContainer {
    fileprivate var domain: ByteString = ""
    fileprivate var container: [ByteString] = []
  }

  /// Returns the entry of a record. The size of a file is not set yet.
  func entry(
    of record: MobileRecord, _ last: inout LastContainer, skipping skipped: inout SkippedEntries
  ) throws(RecordFault) -> ForeignEntry {
    let kind = try record.kind.get()
    var entry = ForeignEntry(path: try path(of: record, &last), kind: .directory)
    switch kind {
    case .file: entry.kind = .file(size: record.file.size)
    case .symlink: entry.kind = .symlink(target: try Self.target(of: record.file))
    case .directory: break
    }
    let file = record.file
    entry.permissions = file.mode.map { $0 & 0o7777 } ?? entry.kind.usualPermissions
    (entry.owner, entry.group) = (file.owner, file.group)
    entry.modified = Timestamp(seconds: file.modified)
    entry.attributes = Self.attributes(of: record, kind, skipping: &skipped)
    if hasDirectories, !record.hasFileIDOfItsName {
      skipped.append(
        SkippedEntry(
          path: record.shownPath,
          reason: "its file ID is not the SHA-1 of its domain and path: its row in Manifest.db is "
            + "damaged, so this name may be wrong", isSuspect: true))
    }
    return entry
  }

  /// Returns the components of the logical path.
  private func path(
    of record: MobileRecord, _ last: inout LastContainer
  ) throws(RecordFault) -> [ByteString] {
    if last.container.isEmpty || last.domain != record.domain {
      guard let container = domains.container(of: record.domain) else {
        throw RecordFault(reason: "its domain is not a valid name")
      }
      last = LastContainer(domain: record.domain, container: container)
    }
    do throws(PathFault) {
      return try PathComponents.parse(record.relativePath, below: last.container)
    } catch { throw RecordFault(reason: error.reason) }
  }

  private static func target(of file: MobileFile) throws(RecordFault) -> ByteString {
    guard let target = file.target, !target.isEmpty else {
      throw RecordFault(reason: "its link has no target")
    }
    guard !target.hasNUL, target.count <= 4095 else {
      throw RecordFault(reason: "its link has an invalid target")
    }
    return target
  }

  /// Returns the attributes under names that Linux permits, which begin with `user.`.
  private static func attributes(
    of record: MobileRecord, _ kind: MobileFile.Kind, skipping skipped: inout SkippedEntries
  ) -> [ForeignEntry.Attribute] {
    let protection = record.file.protectionClass
    let isProtected =
      protection != 0 && protection != MobileFile.usualProtectionClass && kind != .symlink
    if record.file.attributes.isEmpty, !isProtected { return [] }
    var all: [ByteString: [UInt8]] = [:]
    for attribute in record.file.attributes {
      let name = ByteString(Array("user.".utf8) + Array(attribute.name.bytes))
      if attribute.name.isEmpty || name.hasNUL || name.count > attributeNameLimit {
        skipped.append(
          path: record.shownPath, reason: "an extended attribute has an invalid name",
          isPropertyOnly: true)
      } else {
        all[name] = attribute.value
      }
    }
    if isProtected { all[MobileSyncSource.protectionAttribute] = Array(String(protection).utf8) }
    return all.map { ForeignEntry.Attribute(name: $0.key, value: $0.value) }
      .sorted { $0.name < $1.name }
  }

  // MARK: - Contents

  /// Takes the content of a file from the last import. Returns false if it must be read.
  func addKnownContent(
    of record: MobileRecord, to entry: inout ForeignEntry
  ) throws(RecordFault) -> Bool {
    guard let known, !known.isEmpty else { return false }
    do throws(PayloadFault) {
      let status = try contents.status(record.fileID)
      guard status.kind == .file else { return false }
      var version = record.version(in: madeAt, stored: status)
      guard let content = known.content(of: &version), content.size == record.file.size else {
        return false
      }
      entry.kind = .file(size: content.size)
      (entry.version, entry.content) = (version, content)
      return true
    } catch { throw RecordFault(reason: error.reason) }
  }

  /// Opens the content of a file.
  func payload(of record: MobileRecord) throws(RecordFault) -> MobileSyncPayload {
    do throws(PayloadFault) {
      let file = try contents.open(record.fileID)
      let digest = DigestCheck(record.file.digest, acceptsPlain: !hasDirectories)
      guard let keys, let wrapped = record.file.key else {
        return try MobileSyncPayload(file, of: record, in: contents, digest: digest)
      }
      return try MobileSyncPayload(
        file, key: try Self.key(wrapped, keys), of: record, in: contents, digest: digest)
    } catch { throw RecordFault(reason: error.reason) }
  }

  private static func key(
    _ wrapped: WrappedKey, _ keys: ClassKeys
  ) throws(PayloadFault) -> ClassKeys.Key {
    do throws(UnwrapFault) { return try keys.unwrap(wrapped).get() } catch {
      throw PayloadFault(reason: error.reason)
    }
  }

  /// Completes the entry of a file with its content.
  func add(
    _ payload: borrowing MobileSyncPayload, of record: MobileRecord, to entry: inout ForeignEntry,
    skipping skipped: inout SkippedEntries
  ) {
    entry.kind = .file(size: payload.size)
    if payload.size != record.file.size {
      skipped.append(
        path: record.shownPath,
        reason: "its content has \(payload.size) bytes, and the manifest records "
          + "\(record.file.size)", isPropertyOnly: true)
    } else if known != nil {
      // A content of a different size belongs to a database in use: it is read each time.
      entry.version = record.version(in: madeAt, stored: payload.status)
    }
  }
}
