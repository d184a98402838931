internal import ArchiveStore
internal import Codecs
internal import SandboxModel
package import SystemIO

/// The entries of an iTunes or Finder backup under their logical paths (`MobileSyncDomains`).
///
/// Entries arrive in the order of the manifest. A content that is missing or damaged is recorded in
/// `skipped`; everything else is read.
package struct MobileSyncSource: ~Copyable, EntrySource {
  private let backup: MobileSyncBackup
  private var manifest: MobileSyncManifest
  private let domains: MobileSyncDomains
  private let contents: MobileSyncContents
  /// The contents of the last import; nil if they are not asked for.
  private var known: KnownContents?
  private var content: MobileSyncPayload?
  /// The path of the entry whose content is read, for messages.
  private var currentPath: ByteString = ""
  package private(set) var skipped: SkippedEntries

  /// The name of the attribute in which an import keeps the class of data protection, in decimal
  /// digits, unless it is the usual one (3) or none.
  static let protectionAttribute = ProtectionClass.attribute
  /// The limit of an attribute's name in bytes (XATTR_NAME_MAX).
  private static let attributeNameLimit = 255

  /// Begins to read a backup.
  package init(_ backup: consuming MobileSyncBackup) throws(InterchangeError) {
    let manifest = try backup.openManifest()
    let root = try MobileSyncBackup.system(backup.path) { () throws(SystemError) in
      try backup.directory.duplicate()
    }
    domains = MobileSyncDomains(apps: backup.device.apps.map(\.identifier))
    skipped = backup.remarks
    contents = MobileSyncContents(in: root, hasDirectories: manifest.hasDirectories)
    self.manifest = manifest
    self.backup = backup
  }

  /// The description of the device.
  package var device: MobileSyncDevice { backup.device }

  package var madeAt: Timestamp? { backup.device.madeAt }

  package var apps: [ForeignApp] {
    backup.device.apps.map { ForeignApp(identifier: $0.identifier, build: $0.build) }
  }

  package mutating func recognize(in contents: KnownContents) { known = contents }

  package mutating func next() throws(InterchangeError) -> ForeignEntry? {
    content = nil
    while let record = try nextRecord() {
      do throws(RecordFault) {
        let entry = try entry(of: record)
        currentPath = record.shownPath
        return entry
      } catch {
        skipped.append(path: record.shownPath, reason: error.reason)
      }
    }
    return nil
  }

  /// Returns the next record that is valid.
  private mutating func nextRecord() throws(InterchangeError) -> MobileRecord? {
    do throws(ManifestFault) {
      while let found = try manifest.next() {
        switch found {
        case .success(let record): return record
        case .failure(let row): skipped.append(path: row.path, reason: row.reason)
        }
      }
    } catch {
      let name = manifest.hasDirectories ? MobileSyncBackup.database : MobileSyncBackup.records
      throw error.error(in: backup.path.appending(name))
    }
    return nil
  }

  package mutating func read(
    into buffer: UnsafeMutableRawBufferPointer
  ) throws(InterchangeError) -> Int {
    do throws(PayloadFault) {
      return try content?.read(into: buffer) ?? 0
    } catch {
      content = nil
      throw InterchangeError(
        .damagedEntry, "read the file in the backup", subject: currentPath, reason: error.reason,
        cause: error.cause)
    }
  }

  // MARK: - Entries

  private mutating func entry(of record: MobileRecord) throws(RecordFault) -> ForeignEntry {
    let kind = try record.kind.get()
    var entry = ForeignEntry(path: try path(of: record), kind: .directory)
    switch kind {
    case .file: try addContent(of: record, to: &entry)
    case .symlink: entry.kind = .symlink(target: try Self.target(of: record.file))
    case .directory: break
    }
    let file = record.file
    entry.permissions = file.mode.map { $0 & 0o7777 } ?? entry.kind.usualPermissions
    (entry.owner, entry.group) = (file.owner, file.group)
    entry.modified = Timestamp(seconds: file.modified)
    entry.attributes = attributes(of: record, kind)
    return entry
  }

  /// Returns the components of the logical path.
  private func path(of record: MobileRecord) throws(RecordFault) -> [ByteString] {
    guard let container = domains.container(of: record.domain) else {
      throw RecordFault(reason: "its domain is no valid name")
    }
    do throws(PathFault) {
      let path = container + (try PathComponents.parse(record.relativePath))
      if let fault = PathComponents.fault(in: path) { throw PathFault(reason: fault) }
      return path
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

  /// Returns the attributes under the names that Linux permits: a user's begin with `user.`.
  private mutating func attributes(
    of record: MobileRecord, _ kind: MobileFile.Kind
  ) -> [ForeignEntry.Attribute] {
    var all: [ByteString: [UInt8]] = [:]
    for attribute in record.file.attributes {
      let name = ByteString(Array("user.".utf8) + Array(attribute.name.bytes))
      if attribute.name.isEmpty || name.hasNUL || name.count > Self.attributeNameLimit {
        skipped.append(
          path: record.shownPath, reason: "an extended attribute has an invalid name",
          isPropertyOnly: true)
      } else {
        all[name] = attribute.value
      }
    }
    let protection = record.file.protectionClass
    if protection != 0, protection != MobileFile.usualProtectionClass, kind != .symlink {
      all[Self.protectionAttribute] = Array(String(protection).utf8)
    }
    return all.map { ForeignEntry.Attribute(name: $0.key, value: $0.value) }
      .sorted { $0.name < $1.name }
  }

  // MARK: - Contents

  /// Opens the content of a file, unless the last import stored it.
  private mutating func addContent(
    of record: MobileRecord, to entry: inout ForeignEntry
  ) throws(RecordFault) {
    do throws(PayloadFault) {
      if try addKnownContent(of: record, to: &entry) { return }
      let payload = try payload(of: record)
      entry.kind = .file(size: payload.size)
      // A content of another size is that of a database in use: it is read each time.
      if known != nil, payload.size == record.file.size {
        entry.version = record.version(in: madeAt, stored: payload.status)
      }
      report(payload.size, of: record)
      content = consume payload
    } catch { throw RecordFault(reason: error.reason) }
  }

  /// Takes the content from the last import. Returns false if it is another one.
  private func addKnownContent(
    of record: MobileRecord, to entry: inout ForeignEntry
  ) throws(PayloadFault) -> Bool {
    guard let known, !known.isEmpty else { return false }
    let status = try contents.status(record.fileID)
    guard status.kind == .file else { return false }
    var version = record.version(in: madeAt, stored: status)
    guard let content = known.content(of: &version), content.size == record.file.size else {
      return false
    }
    entry.kind = .file(size: content.size)
    (entry.version, entry.content) = (version, content)
    return true
  }

  /// Records that a content has another size than the manifest records.
  private mutating func report(_ size: UInt64, of record: MobileRecord) {
    if size != record.file.size {
      skipped.append(
        path: record.shownPath,
        reason: "its content has \(size) bytes, and the manifest records \(record.file.size)",
        isPropertyOnly: true)
    }
  }

  private func payload(of record: MobileRecord) throws(PayloadFault) -> MobileSyncPayload {
    let file = try contents.open(record.fileID)
    let digest = DigestCheck(record.file.digest, acceptsPlain: !manifest.hasDirectories)
    guard let keys = backup.keys, let wrapped = record.file.key else {
      return try MobileSyncPayload(file, digest: digest)
    }
    return try MobileSyncPayload(
      file, key: try Self.key(wrapped, keys), recordedSize: record.file.size, digest: digest)
  }

  private static func key(
    _ wrapped: WrappedKey, _ keys: ClassKeys
  ) throws(PayloadFault) -> ClassKeys.Key {
    do throws(UnwrapFault) { return try keys.unwrap(wrapped).get() } catch {
      throw PayloadFault(reason: error.reason)
    }
  }
}
