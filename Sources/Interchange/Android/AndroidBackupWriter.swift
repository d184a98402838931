package import Codecs
package import SystemIO

/// Writes an Android backup (`.ab`) of version 5: compressed or not, encrypted or not.
///
/// Each package begins with its manifest. If the exported tree has none, one with the known facts
/// is written: archive programs read the backup, but Android restores no package without
/// certificates (`AndroidManifest`).
///
/// The format has only files and directories: links and special files are skipped, extended
/// attributes and fractions of seconds are not stored.
package final class AndroidBackupWriter: EntrySink {
  /// Appends bytes to the output.
  package typealias Write = (Span<UInt8>) throws(InterchangeError) -> Void

  private var output: AndroidBackupOutput
  private let subject: ByteString
  /// The manifests to write, by package.
  private let manifests: [ByteString: AndroidManifest]
  /// The packages that were begun, with whether Android can restore them.
  private var packages: [ByteString: Bool] = [:]
  /// The rest of the current file, and whether it is skipped.
  private var remaining: UInt64 = 0
  private var padding = 0
  private var isSkipping = false
  /// The manifest of the exported tree that is being written, with its package.
  private var manifest: (package: ByteString, bytes: [UInt8])?
  package private(set) var skipped = SkippedEntries()

  /// Each name of a file with hard links is a file of its own.
  package let holdsHardLinks = false

  static let action = "write the Android backup"

  /// Begins a backup.
  ///
  /// - Parameters:
  ///   - subject: The path of the output for messages.
  ///   - isCompressed: Whether the data is deflated, as Android does by default.
  ///   - password: A password in UTF-8 to encrypt with; not empty.
  ///   - manifests: The manifests to write before the data of their packages. A manifest in the
  ///     exported tree is used if none is given and it is the first entry of its package.
  package init(
    to subject: ByteString, isCompressed: Bool = true, password: consuming SecretBytes? = nil,
    manifests: [ByteString: AndroidManifest] = [:], write: @escaping Write
  ) throws(InterchangeError) {
    self.subject = subject
    self.manifests = manifests
    var header = AndroidBackupHeader(isCompressed: isCompressed)
    var cipher: BlockCipher?
    if let password {
      cipher = AndroidMasterKey.make(for: password, into: &header.encryption).cipher(.encrypt)
    }
    output = try AndroidBackupOutput(header, cipher: cipher, subject: subject, write: write)
  }

  /// Begins a backup that is encrypted if there is a password.
  package convenience init(
    to subject: ByteString, isCompressed: Bool = true, encryptedWith password: BackupPassword?,
    manifests: [ByteString: AndroidManifest], write: @escaping Write
  ) throws(InterchangeError) {
    guard let password else {
      try self.init(
        to: subject, isCompressed: isCompressed, manifests: manifests, write: write)
      return
    }
    try self.init(
      to: subject, isCompressed: isCompressed, password: password.copy(), manifests: manifests,
      write: write)
  }

  /// The packages that Android will not restore, since their certificates are not known, sorted.
  package var unrestorablePackages: [ByteString] {
    packages.filter { !$0.value }.map(\.key).sorted()
  }

  package func add(_ entry: ForeignEntry) throws(InterchangeError) {
    precondition(remaining == 0, "the previous file is not complete")
    finishManifest()
    if case .file(let size) = entry.kind { remaining = size }
    isSkipping = true
    let place: AndroidBackupPath.Stored
    do throws(PathFault) {
      guard let stored = try Self.place(of: entry) else { return }
      place = stored
    } catch {
      return skipped.append(path: entry.joinedPath, reason: error.reason)
    }
    guard try begin(entry, at: place) else { return }
    if !entry.attributes.isEmpty {
      skipped.append(
        path: entry.joinedPath, reason: "an Android backup has no extended attributes",
        isPropertyOnly: true)
    }
    if !AndroidTarHeader.times.contains(entry.modified.seconds) {
      skipped.append(
        path: entry.joinedPath,
        reason: "an Android backup cannot hold a time outside of 1970 to 2242",
        isPropertyOnly: true)
    }
    isSkipping = false
    try append(
      place, isDirectory: entry.kind == .directory, size: remaining,
      permissions: entry.permissions, owner: entry.owner, group: entry.group,
      modified: entry.modified.seconds)
  }

  package func write(_ bytes: UnsafeRawBufferPointer) throws(InterchangeError) {
    precondition(UInt64(bytes.count) <= remaining, "more content than the file's size")
    remaining -= UInt64(bytes.count)
    if isSkipping { return }
    try output.append(bytes)
    if let room = manifest.map({ AndroidManifest.sizeLimit - $0.bytes.count }), room > 0 {
      manifest?.bytes += bytes.prefix(room)
    }
    if remaining == 0 { try output.append(repeatElement(0, count: padding)) }
  }

  package func finish() throws(InterchangeError) {
    precondition(remaining == 0, "the last file is not complete")
    finishManifest()
    try output.append(repeatElement(0, count: 2 * AndroidTarMember.blockSize))
    try output.finish()
  }
}

// MARK: - Members

extension AndroidBackupWriter {
  /// Returns the location of an entry in the backup, or nil for a directory that a backup does not
  /// store.
  private static func place(
    of entry: ForeignEntry
  ) throws(PathFault) -> AndroidBackupPath.Stored? {
    let stored = try AndroidBackupPath.stored(entry.path)
    switch entry.kind {
    case .directory: return stored?.inner.isEmpty == false ? stored : nil
    case .file:
      guard let stored, !stored.inner.isEmpty else {
        throw PathFault(reason: "it is in no tree of a package")
      }
      return stored
    case .symlink: throw PathFault(reason: "an Android backup has no symbolic links")
    case .hardLink: throw PathFault(reason: "an Android backup has no hard links")
    case .fifo, .characterDevice, .blockDevice:
      throw PathFault(reason: "an Android backup has no special files")
    }
  }

  /// Begins the package of an entry if it is the first one. Returns false if the entry is a
  /// manifest that is not written because the package has another.
  private func begin(
    _ entry: ForeignEntry, at place: AndroidBackupPath.Stored
  ) throws(InterchangeError) -> Bool {
    guard let package = place.package else { return true }
    let isManifest = place.token.isEmpty && place.inner == [AndroidBackupPath.manifest]
    if packages[package] != nil {
      if isManifest {
        skipped.append(
          path: entry.joinedPath, reason: "its package was begun with another manifest")
      }
      return !isManifest
    }
    if isManifest && manifests[package] == nil {
      packages[package] = false
      manifest = (package, [])
      return true
    }
    let known = manifests[package] ?? AndroidManifest(package: package)
    packages[package] = known.isRestorable
    try appendManifest(known.encoded(), of: package)
    return !isManifest
  }

  private func appendManifest(_ bytes: [UInt8], of package: ByteString) throws(InterchangeError) {
    let place = AndroidBackupPath.Stored(
      package: package, token: "", inner: [AndroidBackupPath.manifest])
    // As the system's process writes it.
    try append(
      place, isDirectory: false, size: UInt64(bytes.count), permissions: 0o600, owner: 1000,
      group: 1000, modified: 0)
    try output.append(bytes)
    try output.append(
      repeatElement(0, count: AndroidTarHeader.padding(after: UInt64(bytes.count))))
  }

  /// Writes the header of a member.
  private func append(
    _ place: AndroidBackupPath.Stored, isDirectory: Bool, size: UInt64, permissions: UInt16,
    owner: UInt32, group: UInt32, modified: Int64
  ) throws(InterchangeError) {
    let header = AndroidTarHeader(
      prefix: place.prefix, path: ByteString(joining: place.inner), isDirectory: isDirectory,
      size: size, permissions: permissions, owner: owner, group: group, modified: modified)
    padding = AndroidTarHeader.padding(after: size)
    try output.append(header.encoded())
  }

  private func finishManifest() {
    guard let (package, bytes) = manifest else { return }
    manifest = nil
    packages[package] = AndroidManifest(bytes)?.isRestorable ?? false
  }
}
