package import Codecs
package import SystemIO

/// Reads an Android backup (`.ab`), as `adb backup` and programs like android-backup-extractor
/// write it: versions 1 to 5, compressed or not, encrypted or not.
///
/// Entries have logical paths (`AndroidBackupPath`). The file is read once from its beginning, so
/// it may be a pipe; memory does not depend on its size.
package final class AndroidBackupReader: EntrySource {
  /// The header.
  package let header: AndroidBackupHeader
  private let stored: StoredInput
  private var archive: AndroidTarReader
  /// The path of the file for messages.
  private let subject: ByteString
  /// The names of the packages with a manifest, and the manifest's content.
  package private(set) var manifests: [ByteString: AndroidManifest] = [:]
  package private(set) var skipped = SkippedEntries()
  /// The manifest that is being read, with its package.
  private var manifest: (package: ByteString, bytes: [UInt8])?

  /// The maximum number of packages whose manifests are kept; further ones are only imported.
  private static let packageLimit = 10_000

  /// Opens a backup at the current offset of a file.
  ///
  /// - Parameters:
  ///   - password: Returns the password in UTF-8; called only for an encrypted backup.
  ///   - isStopping: Called several times a second while a stream has no bytes; the reading ends
  ///     with `interrupted` once it returns true.
  /// - Throws: `keyRequired` if the backup is encrypted and there is no password, `wrongKey` if the
  ///   password is wrong; `unknownFormat`, `unsupported`, `damaged` or `limitExceeded` if the
  ///   header is not valid.
  package init(
    _ file: consuming Descriptor,
    password: () throws(InterchangeError) -> SecretBytes? = { () throws(InterchangeError) in nil },
    isStopping: @escaping () -> Bool = { false }
  ) throws(InterchangeError) {
    let subject = file.name
    self.subject = subject
    let start = try StoredInput.start(
      of: file, limit: AndroidBackupHeader.sizeLimit, isStopping)
    var count = 0
    header = try AndroidBackupHeader(start, count: &count, of: subject)
    stored = StoredInput(
      file, after: count, of: start, subject: subject, isStopping: isStopping)
    var input: any AndroidBackupInput = stored
    if let encryption = header.encryption {
      let key = try Self.key(encryption, try password(), of: subject)
      input = DecryptedInput(input, key: key, subject: subject)
    }
    if header.isCompressed { input = try InflatedInput(input, subject: subject) }
    archive = AndroidTarReader(input, subject: subject)
  }

  /// Opens a backup, with a password if it is encrypted.
  package convenience init(
    _ file: consuming Descriptor, openedWith password: BackupPassword?,
    isStopping: @escaping () -> Bool = { false }
  ) throws(InterchangeError) {
    try self.init(
      file,
      password: { () throws(InterchangeError) in
        guard let password else { return nil }
        return password.copy()
      }, isStopping: isStopping)
  }

  /// The packages with a manifest.
  package var apps: [ForeignApp] {
    manifests.values.map { manifest in
      let code = manifest.versionCode
      return ForeignApp(identifier: manifest.package, build: code == 0 ? nil : "\(code)")
    }.sorted { $0.identifier < $1.identifier }
  }

  private static func key(
    _ encryption: AndroidBackupHeader.Encryption, _ password: consuming SecretBytes?,
    of subject: ByteString
  ) throws(InterchangeError) -> AndroidMasterKey {
    guard let password else {
      throw InterchangeError(
        .keyRequired, AndroidBackupHeader.action, subject: subject,
        reason: "it is encrypted with a password")
    }
    guard let key = AndroidMasterKey.open(encryption, with: password) else {
      throw InterchangeError(
        .wrongKey, AndroidBackupHeader.action, subject: subject, reason: "the password is wrong")
    }
    return key
  }

  package func next() throws(InterchangeError) -> ForeignEntry? {
    finishManifest()
    while let member = try archive.next() {
      do throws(PathFault) {
        if let entry = try entry(of: member) { return entry }
      } catch {
        skipped.append(path: member.path, reason: error.reason)
      }
    }
    try requireUnchanged()
    return nil
  }

  /// Checks that the file did not change while it was read: its contents have no checksums.
  private func requireUnchanged() throws(InterchangeError) {
    guard stored.hasChanged else { return }
    var error = InterchangeError(
      .damaged, AndroidBackupHeader.action, subject: subject,
      reason: InterchangeError.changedReason)
    error.isSuspect = true
    throw error
  }

  package func read(into buffer: UnsafeMutableRawBufferPointer) throws(InterchangeError) -> Int {
    let count = try archive.read(into: buffer)
    if let room = manifest.map({ AndroidManifest.sizeLimit - $0.bytes.count }), room > 0 {
      manifest?.bytes += buffer.prefix(min(count, room))
    }
    return count
  }

  // MARK: - Entries

  private func entry(of member: AndroidTarMember) throws(PathFault) -> ForeignEntry? {
    let stored = try PathComponents.parse(member.path)
    guard let path = try AndroidBackupPath.logical(stored) else { return nil }
    if let fault = PathComponents.fault(in: path) { throw PathFault(reason: fault) }
    let kind = try kind(of: member)
    for omission in member.omissions {
      skipped.append(path: member.path, reason: omission, isPropertyOnly: true)
    }
    if stored.count == 3, stored[2] == AndroidBackupPath.manifest,
      manifests.count < Self.packageLimit
    {
      manifest = (stored[1], [])
    }
    return ForeignEntry(
      path: path, kind: kind, permissions: member.permissions, owner: member.owner,
      group: member.group, modified: member.modified, attributes: member.attributes)
  }

  private func kind(of member: AndroidTarMember) throws(PathFault) -> ForeignEntry.Kind {
    if let size = member.unreadExtension {
      throw PathFault(reason: "its extended header has \(size) bytes, which is too large")
    }
    if member.isSparse {
      throw PathFault(reason: "it is a sparse file of GNU tar, which no backup of Android has")
    }
    switch member.type {
    case UInt8(ascii: "0"): return .file(size: member.size)
    case UInt8(ascii: "5"): return .directory
    case UInt8(ascii: "2"):
      guard !member.link.isEmpty, !member.link.hasNUL else {
        throw PathFault(reason: "its link has no target")
      }
      return .symlink(target: member.link)
    case UInt8(ascii: "1"):
      guard let target = try AndroidBackupPath.logical(try PathComponents.parse(member.link)) else {
        throw PathFault(reason: "its hard link has no file")
      }
      return .hardLink(to: target)
    default: throw PathFault(reason: "it is neither a file, a directory nor a link")
    }
  }

  private func finishManifest() {
    guard let (package, bytes) = manifest else { return }
    manifest = nil
    if let known = AndroidManifest(bytes), known.package == package { manifests[package] = known }
  }
}
